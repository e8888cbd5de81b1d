// Checks whether second derivatives are supported.
#pragma once

#include <vector>

#include "layout/unsupported.h"
#include "layout/views.h"

namespace mujacobian {

// Returns all elements of the model that have first derivatives but may lack second derivatives in
// some state, with the reasons.
std::vector<Unsupported> list_second_order(const ModelView& m);

// Throws Unsupported if an element of the model has no second derivative in any state. Sensors
// count if their cotangents, in the vector `sensors` (nsensordata), are not zero; null: all are
// zero.
void require_second_order(const ModelView& m, const double* sensors);

}  // namespace mujacobian

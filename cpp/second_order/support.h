// Checks whether second derivatives are supported.
#pragma once

#include <vector>

#include "dynamics/forward.h"
#include "layout/unsupported.h"

namespace mujacobian {

// Returns all elements of the model that have first derivatives but may lack second derivatives in
// some state, with the reasons.
std::vector<Unsupported> list_second_order(const ModelView& m);

// Throws Unsupported if an element of the model has no second derivative in any state. Sensors
// count if their cotangents, in the vector `sensors` (nsensordata), are not zero; null: all are
// zero.
void require_second_order(const ModelView& m, const double* sensors);

// Throws Unsupported if a constraint or an actuator that acts in this state has no second
// derivative.
void require_second_order(const ModelView& m, const ForwardDynamics& forward);

}  // namespace mujacobian

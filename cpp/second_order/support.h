// Checks whether second derivatives are supported.
#pragma once

#include <vector>

#include "layout/unsupported.h"
#include "layout/views.h"

namespace mujacobian {

// Returns all elements of the model that have first derivatives but may lack second derivatives in
// some state, with the reasons.
std::vector<Unsupported> list_second_order(const ModelView& m);

// The reason why some options prevent second derivatives with respect to parameters.
inline constexpr const char* kOptionOfParameters =
    "second derivatives with respect to parameters are not supported";

// Returns the options with which second derivatives with respect to parameters are not supported in
// some state. Those that prevent first derivatives are not among them.
std::vector<Unsupported> list_parameter_options(const ModelView& m);

// Throws Unsupported if an element of the model has no second derivative in any state. Sensors
// count if their cotangents, in the vector `sensors` (nsensordata), are not zero; null: all are
// zero.
void require_second_order(const ModelView& m, const double* sensors);

}  // namespace mujacobian

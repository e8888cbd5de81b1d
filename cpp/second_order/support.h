// Checks whether second derivatives are supported.
#pragma once

#include <vector>

#include "dynamics/forward.h"
#include "layout/unsupported.h"

namespace mujacobian {

// Returns all elements of the model that have first derivatives but may lack second derivatives in
// some state, with the reasons.
std::vector<Unsupported> list_second_order(const ModelView& m);

// Throws Unsupported if an element of the model has no second derivative in any state.
void require_second_order(const ModelView& m);

// Throws Unsupported if a constraint or an actuator that acts in this state has no second
// derivative.
void require_second_order(const ModelView& m, const ForwardDynamics& forward);

// Throws Unsupported with the name of the first sensor whose cotangent, in the vector `sensors`
// (nsensordata), is not zero.
void require_no_sensors(const ModelView& m, const double* sensors);

}  // namespace mujacobian

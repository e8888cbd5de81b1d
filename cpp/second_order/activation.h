// Second derivatives of the activations after a step.
#pragma once

#include "actuation/actuation.h"
#include "second_order/hessian.h"

namespace mujacobian {

// Adds the second derivatives of the next activations, weighted with the cotangent `next` (nx) of
// the next state, to the outputs.                                                         (HES-5)
void add_activation_hessians(const ModelView& m, const DataView& d, const Actuation& actuation,
                             const double* next, const HessianOutputs& out, Arena& arena);

}  // namespace mujacobian

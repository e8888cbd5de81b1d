// Second derivatives of the activations after a step.
#pragma once

#include <functional>

#include "actuation/actuation.h"

namespace mujacobian {

// Calls visit(j, k, second) for the second derivatives of the next activations with respect to
// entries j and k of (state, controls), in both orders. They are weighted with the cotangent `next`
// (nx) of the next state.                                                                 (HES-5)
void visit_activation_hessians(const ModelView& m, const DataView& d, const Actuation& actuation,
                               const double* next, Arena& arena,
                               const std::function<void(int, int, double)>& visit);

}  // namespace mujacobian

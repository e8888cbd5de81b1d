// Second derivatives of the activations after a step.
#pragma once

#include <functional>

#include "actuation/curvature.h"

namespace mujacobian {

// Calls visit(j, k, second) for the second derivatives of the next activations, or of their rates,
// with respect to entries j and k of (state, controls), in both orders. They are weighted with
// `weights` (na).                                                                         (HES-5)
void visit_activation_hessians(const ModelView& m, const DataView& d, const Actuation& actuation,
                               ActivationValue of, const double* weights, Arena& arena,
                               const std::function<void(int, int, double)>& visit);

}  // namespace mujacobian

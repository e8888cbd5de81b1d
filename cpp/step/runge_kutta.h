// The Runge-Kutta integrator: four evaluations of the forward dynamics, chained on the manifold.
// docs/derivations/integrators.md.
#pragma once

#include "step/transition.h"

namespace mujacobian {

// As transition(), for integrator RK4.
void runge_kutta(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena);

}  // namespace mujacobian

// The derivative of the Runge-Kutta integrator: four evaluations of the forward dynamics, combined
// by the chain rule on the manifold of positions. docs/derivations/integrators.md.
#pragma once

#include <functional>

#include "dynamics/forward.h"
#include "step/transition.h"

namespace mujacobian {

// Extra columns, for parameters that change the acceleration of the stages.
struct StageColumns {
  int count;
  double* out;  // (nx, count): derivatives of the next state
  // returns -dg of a stage, (count, nv)
  std::function<const double*(const DataView& at, const ForwardDynamics& forward)> at;
};

// The function `transition` for the integrator RK4. `extra` may be null.
void runge_kutta(const ModelView& m, const DataView& d, const Outputs& out,
                 const StageColumns* extra, Arena& arena);

}  // namespace mujacobian

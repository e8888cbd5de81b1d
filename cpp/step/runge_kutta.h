// The Runge-Kutta integrator: four evaluations of the forward dynamics, chained on the manifold.
// docs/derivations/integrators.md.
#pragma once

#include <functional>

#include "dynamics/forward.h"
#include "step/transition.h"

namespace mujacobian {

// Whatever else drives the acceleration of the stages, in columns of its own.
struct StageColumns {
  int count;
  double* out;  // (nx, count), of the next state
  // -dg in a stage, (count, nv)
  std::function<const double*(const DataView& at, const ForwardDynamics& forward)> at;
};

// As transition(), for integrator RK4; `extra` may be null.
void runge_kutta(const ModelView& m, const DataView& d, const Outputs& out,
                 const StageColumns* extra, Arena& arena);

}  // namespace mujacobian

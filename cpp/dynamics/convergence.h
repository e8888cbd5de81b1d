// How far the acceleration of mj_step is from the one that is differentiated, because MuJoCo's
// constraint solver or its collider stopped early. docs/derivations/constraints.md.
#pragma once

#include "contact/collider.h"
#include "dynamics/forward.h"
#include "layout/enums.h"

namespace mujacobian {

// Relative distance of MuJoCo's acceleration from the optimum beyond which its solver counts as not
// converged.
constexpr double kSolverLimit = 1e-3;

// Share of that limit up to which an estimate (SOL-4) is trusted.
constexpr double kSure = 0.1;

// Set the errors of f, whose optimum is known, and notice those beyond their limits.
void check_convergence(const ModelView& m, const DataView& d, ForwardDynamics& f, Arena& arena);

// Distance of an acceleration from the exact one, relative within each component.       (SOL-3)
double acceleration_distance(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             const double* given, const double* exact);

// The optimum that MuJoCo's solver was looking for with other contacts than those of f: one step of
// Newton's method from where it stopped, with the Hessian of f.                         (SOL-4)
const double* estimate_optimum(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                               Arena& arena);

// The error of the solver alone. measure(optimum) is the error of what it found beside an optimum,
// that of f if it is null. If contacts have been found again since the solver ran, `measure` sees
// their change as well: then the error is estimated, and if in doubt, MuJoCo's solver runs again.
template <class F>
double solver_share(const ModelView& m, const DataView& d, const ForwardDynamics& f, F measure,
                    Arena& arena) {
  const double both = measure(nullptr);
  if (both <= kSolverLimit || !is_unsolved(d)) return both;
  if (m.opt.solver != solver::kPGS) {
    const double alone = measure(estimate_optimum(m, d, f, arena));
    if (alone <= kSure * kSolverLimit) return alone;
  }
  solve_again(d);
  return measure(nullptr);
}

}  // namespace mujacobian

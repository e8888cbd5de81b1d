// The distance of the acceleration of mj_step from the one that is differentiated. They differ if
// MuJoCo's constraint solver or its collider stops before convergence.
// docs/derivations/constraints.md.
#pragma once

#include "contact/collider.h"
#include "dynamics/forward.h"
#include "layout/enums.h"

namespace mujacobian {

// If the relative distance of MuJoCo's acceleration from the optimum is larger than this limit, its
// solver has not converged. The relative error of its derivative is about the square root. (SOL-5)
constexpr double kSolverLimit = 2.5e-5;

// The limit for a solver that has used all of its iterations, so that no test of convergence has
// accepted its last iterate.
constexpr double kCappedSolverLimit = 0.1 * kSolverLimit;

// Returns the one of these limits that applies.
double solver_limit(const ModelView& m, const DataView& d);

// Adds a notice if the error of the solver exceeds this limit.
void notice_solver(const ModelView& m, const DataView& d, double error);

// An estimate (SOL-4) is accepted up to this share of the limit.
constexpr double kSure = 0.1;

// Length of a motion, in m or rad, over which a slope of the step that MuJoCo takes may differ from
// the derivative by kSlopeLimit, relative to the largest slope beside it.                 (CON-46)
constexpr double kSlopeLength = 1e-5, kSlopeLimit = 1e-2;

// Adds a notice if the slopes of component c of `rows`, which contain the derivatives of
// accelerations, differ by more because the contacts of MuJoCo's collider follow facets.
void check_slope(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                 const DofRows& rows, int c, Arena& arena);

// Sets the errors of f, whose optimum is known, and adds a notice for each error above its limit.
void check_convergence(const ModelView& m, const DataView& d, ForwardDynamics& f, Arena& arena);

// Returns the distance of an acceleration from the exact one, relative within each component.
// (SOL-3)
double acceleration_distance(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             const double* given, const double* exact);

// Returns an estimate of the optimum for the contacts that MuJoCo's solver had, which differ from
// those of f: one Newton step from MuJoCo's result, with the Hessian of f.               (SOL-4)
const double* estimate_optimum(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                               Arena& arena);

// Returns the error of the solver alone. measure(optimum) is the distance of MuJoCo's result from
// an optimum, that of f if it is null. If the contacts were computed again after the solver ran,
// this distance includes their change. The error is then estimated, and if the estimate is not
// clear, MuJoCo's solver runs again.
template <class F>
double solver_share(const ModelView& m, const DataView& d, const ForwardDynamics& f, F measure,
                    Arena& arena) {
  const double both = measure(nullptr);
  if (both <= kCappedSolverLimit || !is_unsolved(d)) return both;
  const double limit = solver_limit(m, d);
  if (both <= limit) return both;
  if (m.opt.solver != solver::kPGS) {
    const double alone = measure(estimate_optimum(m, d, f, arena));
    if (alone <= kSure * limit) return alone;
  }
  solve_again(d);
  return measure(nullptr);
}

}  // namespace mujacobian

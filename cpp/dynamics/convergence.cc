#include "dynamics/convergence.h"

#include <algorithm>
#include <cmath>

#include "layout/notice.h"
#include "layout/sleep.h"
#include "spatial/vector.h"

namespace mujacobian {
namespace {

// A smaller change of a velocity in one step, in m/s or rad/s, may be the rounding error of forces
// that cancel.
constexpr double kNegligible = 1e-9;

constexpr double kStandardGravity = 9.81;
constexpr double kManyWeights = 100;

// Returns the size up to which accelerations that constraints prevent count as a scale.   (SOL-3)
double most_prevented(const ModelView& m) {
  return kManyWeights * std::max(kStandardGravity, norm(load3(m.opt.gravity.v)));
}

// Returns the largest difference of two accelerations of a component.
double largest_gap(const ModelView& m, const DataView& d, const Component& part,
                   const double* given, const double* exact) {
  double apart = 0;
  for (int i = 0; i < part.nv; i++) {
    const int dof = part.dofs[i];
    if (is_asleep(m, d, m.dof_treeid[dof])) continue;
    const double gap = std::abs(given[dof] - exact[dof]);
    apart = gap > apart ? gap : apart;
  }
  return apart;
}

// The acceleration with converged contacts, as accurate as the caller's solver if it ran again.
const double* exact_acceleration(const DataView& d, const ForwardDynamics& f) {
  return is_unsolved(d) ? f.acc : d.qacc;
}

}  // namespace

double solver_limit(const ModelView& m, const DataView& d) {
  const int* iterations = d.solver_niter.v;  // of each island; zero if there is none
  const bool capped = *std::max_element(iterations, iterations + 20) >= m.opt.iterations;
  return capped ? kCappedSolverLimit : kSolverLimit;
}

void notice_solver(const ModelView& m, const DataView& d, double error) {
  if (error > kCappedSolverLimit) notices().add(Notices::kSolver, {error, solver_limit(m, d)});
}

double acceleration_distance(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             const double* given, const double* exact) {
  double worst = 0;
  for (int c = 0; c < f.residual.count; c++) {
    const Component& part = f.residual.components[c];
    const double apart = largest_gap(m, d, part, given, exact);
    double scale = 0;
    if (!(apart * m.opt.timestep > kNegligible)) continue;
    const double most = most_prevented(m);
    for (int i = 0; i < part.nv; i++) {
      const int dof = part.dofs[i];
      if (is_asleep(m, d, m.dof_treeid[dof])) continue;
      const double prevented = std::min(std::abs(d.qacc_smooth[dof]), most);
      scale = std::max({scale, std::abs(given[dof]), prevented});
    }
    worst = std::fmax(worst, apart / scale);
  }
  return worst;
}

const double* estimate_optimum(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                               Arena& arena) {
  // gradient of the cost at qacc, then the Newton step
  double* step = arena.zeros<double>(m.nv);
  multiply_inertia(m, d, d.qacc, step);
  for (int i = 0; i < m.nv; i++) step[i] -= d.qfrc_smooth[i] + d.qfrc_constraint[i];
  solve_hessian(m, f.tree, f.optimum, f.residual, step, arena);
  for (int i = 0; i < m.nv; i++) step[i] = d.qacc[i] - step[i];
  return step;
}

void check_slope(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                 const DofRows& rows, int c, Arena& arena) {
  const double* given = given_acceleration(d);
  if (!given) return;
  const Component& part = rows.components[c];
  double apart = largest_gap(m, d, part, given, exact_acceleration(d, f));
  if (!(apart * m.opt.timestep > kNegligible)) return;

  // relative to the largest derivative with respect to a position
  double slope = 0;
  for (int i = 0; i < part.nv; i++) {
    const double* row = rows.row[part.dofs[i]];
    for (int k = 0; k < part.nv; k++) slope = std::fmax(slope, std::abs(row[k]));
  }
  const double most = kSlopeLimit * kSlopeLength * slope;
  Notice notice{0, kSlopeLimit};
  if (apart <= most || !find_faceted(m, d, notice.element)) return;

  // without the error of the solver
  if (is_unsolved(d) && m.opt.solver != solver::kPGS) {
    apart = largest_gap(m, d, part, estimate_optimum(m, d, f, arena), f.acc);
  } else if (f.collider_error <= f.solver_error) {
    return;
  }
  notice.value = apart / (slope * kSlopeLength);
  notices().add(Notices::kSlope, notice);
}

void check_convergence(const ModelView& m, const DataView& d, ForwardDynamics& f, Arena& arena) {
  auto measure = [&](const double* optimum) {
    return acceleration_distance(m, d, f, d.qacc, optimum ? optimum : f.acc);
  };
  f.solver_error = solver_share(m, d, f, measure, arena);
  notice_solver(m, d, f.solver_error);

  // if the collider was run again: the distance of the caller's acceleration
  const double* given = given_acceleration(d);
  if (!given) return;
  f.collider_error = acceleration_distance(m, d, f, given, exact_acceleration(d, f));
  notice_collider(d, f.collider_error);
}

}  // namespace mujacobian

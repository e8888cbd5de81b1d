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

}  // namespace

double acceleration_distance(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             const double* given, const double* exact) {
  double worst = 0;
  for (int c = 0; c < f.residual.count; c++) {
    const Component& part = f.residual.components[c];
    double apart = 0, scale = 0;
    for (int i = 0; i < part.nv; i++) {
      const int dof = part.dofs[i];
      if (is_asleep(m, d, m.dof_treeid[dof])) continue;
      const double gap = std::abs(given[dof] - exact[dof]);
      apart = gap > apart ? gap : apart;
    }
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

void check_convergence(const ModelView& m, const DataView& d, ForwardDynamics& f, Arena& arena) {
  auto measure = [&](const double* optimum) {
    return acceleration_distance(m, d, f, d.qacc, optimum ? optimum : f.acc);
  };
  f.solver_error = solver_share(m, d, f, measure, arena);
  notices().add(Notices::kSolver, {f.solver_error, kSolverLimit});

  // if the collider was run again: the distance of the caller's acceleration
  const double* given = given_acceleration(d);
  if (!given) return;
  f.collider_error = acceleration_distance(m, d, f, given, is_unsolved(d) ? f.acc : d.qacc);
  notice_collider(d, f.collider_error);
}

}  // namespace mujacobian

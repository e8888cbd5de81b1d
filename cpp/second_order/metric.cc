#include "second_order/metric.h"

#include "actuation/curvature.h"
#include "forces/passive.h"
#include "forces/spring_bend.h"
#include "forces/tendon.h"
#include "layout/unsupported.h"
#include "second_order/path.h"

namespace mujacobian {
namespace {

// Joint springs: h k(q) mu . (v + h a), with one stiffness for all dofs of a translation or
// rotation.                                                                               (HES-67)
void add_spring_metric(const ModelView& m, const DataView& d, const double* acc, const double* mu,
                       const QuadraticForm& form) {
  const double h = m.opt.timestep;
  for (int j = 0; springs_enabled(m) && j < m.njnt; j++) {
    SpringSlope slope[2];
    Mat3 bend[2];
    const int count = spring_slopes(m, d, j, slope);
    spring_bends(m, d, j, bend);
    for (int s = 0; s < count; s++) {
      const auto& [dof, n, stiffness, gradient] = slope[s];
      double ahead = 0;
      for (int i = 0; i < n; i++) ahead += h * mu[dof + i] * (d.qvel[dof + i] + h * acc[dof + i]);
      for (int i = 0; i < n; i++) {
        for (int k = 0; k <= i; k++) {
          form.add(dof, form.q_column(dof + i), form.q_column(dof + k), ahead * bend[s](i, k));
        }
        for (int k = 0; k < n; k++) {
          const double mixed = h * mu[dof + i] * gradient[k];
          form.q(dof + k)[form.v_column(dof + i)] += mixed;
          form.mixed[dof + i][form.q_column(dof + k)] += h * mixed;
        }
      }
    }
  }
}

// Returns the second derivatives of the slope -k of a force along a path, for the variables of its
// curvature; null: zero.
const double* stiffness_bend(const ModelView& m, const DataView& d, const PathForces& paths,
                             const PathCurvature& c, Arena& arena) {
  int k = 0;
  for (int t = 0; t < m.ntendon; t++) {
    PathForce force;
    if (!tendon_force(m, d, t, {}, force)) continue;
    if (paths.tendon + k++ != c.of) continue;
    double* second = arena.zeros<double>(c.count * c.count);
    second[0] = -acting_stiffness(m, t).third();
    return second;
  }
  return stiffness_curvature(m, d, paths.actuation, c, arena);
}

// Forces along paths: (mu . m) (h k (m . v + h m . a) + h b (m . a)), where -k and -b are slopes of
// the stabilizing sign.                                                                   (HES-68)
void add_path_metric(const ModelView& m, const DataView& d, const PathForces& paths,
                     const double* acc, const double* mu, const QuadraticForm& form, Arena& arena) {
  const double h = m.opt.timestep;
  const PathCurvatures all = path_curvatures(m, d, paths, arena);
  for (int k = 0; k < all.count; k++) {
    const PathCurvature& c = all.item[k];
    const PathForce& f = *c.of;
    if (f.path.n == 0) continue;
    const CurvedPath path{f.path, c.source};
    const PathScalar virt{PathScalar::kVirtual, &path, mu, nullptr, 0};
    const PathScalar moved{PathScalar::kAcceleration, &path, acc, nullptr, 0};
    const PathScalar rate{PathScalar::kVelocity, &path, d.qvel, nullptr, 0};
    auto add = [&](const PathFunction& gain, const PathScalar& with, double weight) {
      add_path_function(m, d, multiply(gain, &virt, &with, 1, arena), weight, form, arena);
    };
    if (f.stiffness < 0) {
      const LawDerivatives law{f.stiffness, f.stiffness_dlength, f.stiffness_drate,
                               &InputSlope::stiffness, stiffness_bend(m, d, paths, c, arena)};
      const PathFunction slope = law_function(d, c, path, law, arena);
      add(slope, rate, -h);
      add(slope, moved, -h * h);
    }
    // the damping of a tendon may touch zero
    const bool touches =
        k < all.tendons && f.damping == 0 && f.damping_drate == 0 && c.damping[3] < 0;
    if (f.damping < 0 || touches) add(damping_function(d, c, path, arena), moved, -h);
  }
}

}  // namespace

void add_metric_hessian(const ModelView& m, const DataView& d, const StepDifferential& s,
                        const double* mu, const QuadraticForm& form, Arena& arena) {
  if (!has_metric(m)) return;
  for (int k = 0; k < s.forward.blocks.count; k++) {
    if (!s.forward.blocks.block[k].active) continue;
    throw Unsupported("option integrator=\"discrete\"", kDiscreteRows);
  }
  add_spring_metric(m, d, s.at, mu, form);
  add_path_metric(m, d, s.forward.paths, s.at, mu, form, arena);
}

}  // namespace mujacobian

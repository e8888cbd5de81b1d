// Potential and kinetic energy.
#include "sensor/energy.h"

#include "forces/tendon_curvature.h"
#include "layout/enums.h"
#include "second_order/sensor_form.h"
#include "second_order/tendon_inertia.h"
#include "sensor/type.h"
#include "tree/inverse_dynamics_hessian.h"
#include "tree/point.h"

namespace mujacobian {
namespace {

// -m g . (center of mass) of everything that a dof moves
void add_weight(Sensing& s, double weight, SensorForm& form) {
  const ModelView& m = s.m;
  if (m.opt.disableflags & disable::kGravity) return;
  const Vec3 gravity = load3(m.opt.gravity.v);
  Vec3* moved = s.arena.take<Vec3>(m.nv);  // of this center, times the mass
  for (int k = 0; k < m.nv; k++) {
    const int body = m.dof_bodyid[k];
    const Point center = make_point(m, s.d, body, s.d.subtree_com + 3 * body);
    moved[k] = m.body_subtreemass[body] * point_jacobian(s.d, center, k);
  }
  auto entry = [&](int l, int k) {
    return -weight * dot(gravity, cross(dof_axis(s.d, l).ang, moved[k]));
  };
  for (int k = 0; k < m.nv; k++)
    for (int l = k; l >= 0; l = m.dof_parentid[l]) {
      add_position_pair(m, l, k, entry(l, k), [&] { return entry(k, l); }, form);
    }
}

// The gradient of the energy is the opposite of the force.                                (HSE-13)
void add_joint_springs(Sensing& s, double weight, SensorForm& form) {
  const ModelView& m = s.m;
  const DofRows force = make_like(m, s.f.residual, s.arena);
  add_springs(m, s.d, force);
  for (int i = 0; i < m.nv; i++)
    for (int k = i; k >= 0 && m.dof_jntid[k] == m.dof_jntid[i]; k--) {
      const double mean = 0.5 * (force.dq(i, k) + force.dq(k, i));
      form.add({DofVariable::kPosition, i}, {DofVariable::kPosition, k}, -weight * mean);
    }
}

void add_tendon_springs(Sensing& s, double weight, SensorForm& form) {
  const ModelView& m = s.m;
  for (int t = 0; t < m.ntendon; t++) {
    const TendonSpring spring = tendon_spring(m, s.d, t);
    if (spring.stretch == 0 || spring.spring.zero()) continue;
    const CurvedPath path{s.tendon(t), tendon_source(m, t)};
    PathFunction energy = make_path_function(1, s.arena);
    energy.scalar[0] = {PathScalar::kLength, &path, nullptr, nullptr, 0};
    energy.slope[0] = spring.pull();
    energy.second[0] = spring.spring.slope(spring.stretch);
    add_path_function(m, s.d, energy, weight, form.forms().late, s.arena);
  }
}

// v M v / 2                                                                               (HSE-13)
void add_kinetic(Sensing& s, double weight, SensorForm& form) {
  constexpr auto q = DofVariable::kPosition, v = DofVariable::kVelocity;
  const ModelView& m = s.m;
  const QuadraticForm power = make_quadratic_form(m, s.f.residual, s.arena);
  add_inertia_hessian(m, s.d, s.f.tree, s.d.qvel, s.d.qvel, power, s.arena);
  add_tendon_inertia_hessian(m, s.d, s.f.tree, s.d.qvel, s.d.qvel, power, s.arena);
  for (int i = 0; i < m.nv; i++) {
    const Component& part = power.layout.components[power.layout.component[i]];
    for (int k = 0; k < part.nv; k++) {
      const int j = part.dofs[k];
      form.add({v, i}, {q, j}, weight * power.mixed[i][k]);
      if (j > i) continue;
      const double half = power.q(i)[power.q_column(j)] + power.q(j)[power.q_column(i)];
      form.add({q, i}, {q, j}, 0.5 * weight * half);
    }
    for (int p = m.M_rowadr[i], last = p + m.M_rownnz[i]; p < last; p++) {
      form.add({v, i}, {v, m.M_colind[p]}, weight * s.d.M[p]);
    }
  }
}

}  // namespace

void add_energy_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  if (s.m.sensor_type[sensor] == sensor::kKinetic) return add_kinetic(s, weights[0], form);
  add_weight(s, weights[0], form);
  if (!springs_enabled(s.m)) return;
  add_joint_springs(s, weights[0], form);
  add_tendon_springs(s, weights[0], form);
}

}  // namespace mujacobian

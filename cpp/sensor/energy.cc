#include "sensor/energy.h"

#include "forces/tendon.h"
#include "layout/enums.h"
#include "sensor/type.h"
#include "spatial/rotation.h"
#include "tree/point.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// -m g . (center of mass) of everything that a dof moves
void add_weight(Sensing& s, SensorRows& rows) {
  const ModelView& m = s.m;
  if (m.opt.disableflags & disable::kGravity) return;
  const Vec3 gravity = load3(m.opt.gravity.v);
  for (int k = 0; k < m.nv; k++) {
    const int body = m.dof_bodyid[k];
    const Point center = make_point(m, s.d, body, s.d.subtree_com + 3 * body);
    rows.q(0, k) -= m.body_subtreemass[body] * dot(gravity, point_jacobian(s.d, center, k));
  }
}

// The gradient of a spring is coefficient(|e|) e for a displacement e, also for rotations (SEN-15)
void add_joint_springs(Sensing& s, SensorRows& rows) {
  const ModelView& m = s.m;
  for (int j = 0; j < m.njnt; j++) {
    const Poly spring = joint_stiffness(m, j);
    if (spring.zero()) continue;
    const double* qpos = s.d.qpos + m.jnt_qposadr[j];
    const double* rest = m.qpos_spring + m.jnt_qposadr[j];
    if (is_plastic(m.jnt_plasticadr, j)) rest = s.d.plastic + m.jnt_plasticadr[j];
    int dof = m.jnt_dofadr[j];
    if (m.jnt_type[j] == joint::kSlide || m.jnt_type[j] == joint::kHinge) {
      const double x = qpos[0] - rest[0];
      rows.q(0, dof) += x * spring.coefficient(x);
      continue;
    }
    auto add_radial = [&](Vec3 e) {
      double gradient[3];
      store3(gradient, spring.coefficient(norm(e)) * e);
      for (int k = 0; k < 3; k++) rows.q(0, dof + k) += gradient[k];
    };
    if (m.jnt_type[j] == joint::kFree) {
      add_radial(load3(qpos) - load3(rest));
      dof += 3, qpos += 3, rest += 3;
    }
    add_radial(quaternion_difference(qpos, rest));
  }
}

void add_tendon_springs(Sensing& s, SensorRows& rows) {
  const ModelView& m = s.m;
  for (int t = 0; t < m.ntendon; t++) {
    const double pull = tendon_spring(m, s.d, t).pull();
    for (int k = m.ten_J_rowadr[t], last = k + m.ten_J_rownnz[t]; k < last; k++) {
      rows.q(0, m.ten_J_colind[k]) += pull * s.d.ten_J[k];
    }
  }
}

// v M v / 2: bodies change by S' . momentum, tendon armature by its own derivative        (SEN-16)
void sense_kinetic(Sensing& s, SensorRows& rows) {
  const ModelView& m = s.m;
  const double* v = s.d.qvel;
  for (int i = 0; i < m.nv; i++) {
    rows.q(0, i) += dot(load_motion(s.d.cdof_dot + 6 * i), s.momentum()[m.dof_bodyid[i]]);
    const int first = m.M_rowadr[i], last = first + m.M_rownnz[i] - 1;
    rows.v(0, i) += s.d.M[last] * v[i];
    for (int p = first; p < last; p++) {
      const int j = m.M_colind[p];
      rows.v(0, i) += s.d.M[p] * v[j];
      rows.v(0, j) += s.d.M[p] * v[i];
    }
  }
  bool armature = false;
  for (int t = 0; t < m.ntendon; t++) armature |= tendon_armature(m, t) != 0;
  if (!armature) return;
  const DofRows change = make_like(m, s.f.residual, s.arena);
  add_tendon_armature(m, at_rest(m, s.d, s.arena), s.f.tree, v, change, s.arena);
  for (int i = 0; i < m.nv; i++) rows.add_generalized(0, -0.5 * v[i], change, i);
}

}  // namespace

TendonSpring tendon_spring(const ModelView& m, const DataView& d, int t) {
  const double* p = m.tendon_stiffnesspoly + kNPoly * t;
  const double length = d.ten_length[t], *rest = m.tendon_lengthspring + 2 * t;
  if (is_plastic(m.tendon_plasticadr, t)) rest = d.plastic + m.tendon_plasticadr[t];
  // tie: energy of a dead band
  const double x = length > rest[1] ? length - rest[1] : length < rest[0] ? length - rest[0] : 0;
  return {{m.tendon_stiffness[t], {p[0], p[1]}}, x};
}

// Potential or kinetic energy
void sense_energy(Sensing& s, int sensor, SensorRows& rows) {
  if (s.m.sensor_type[sensor] == sensor::kKinetic) return sense_kinetic(s, rows);
  add_weight(s, rows);
  if (s.m.opt.disableflags & disable::kSpring) return;
  add_joint_springs(s, rows);
  add_tendon_springs(s, rows);
}

}  // namespace mujacobian

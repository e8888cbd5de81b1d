// Force and torque between the body of a site and its parent.
#include "forces/tendon.h"
#include "layout/enums.h"
#include "sensor/frame.h"
#include "sensor/subtree.h"
#include "sensor/type.h"
#include "sensor/virtual_motion.h"

namespace mujacobian {
namespace {

Vec3 against(const VirtualMotions& z, Force f) {
  return {dot(z.axis[0], f), dot(z.axis[1], f), dot(z.axis[2], f)};
}

// Inertial forces and xfrc_applied                                                      (SEN-18)
void add_inertial(Sensing& s, const VirtualMotions& z, SensorRows& rows) {
  const SubtreeForces& forces = s.subtree_forces();
  const MotionSweep& motion = s.motion();
  visit_subtree(s.m, z.body, [&](int k, int part) {
    const Composite& c = forces.inertial[part];
    const Inertia inertia{s.d.crb + 10 * part};
    const Motion axis = dof_axis(s.d, k), axis_dot = load_motion(s.d.cdof_dot + 6 * k);
    const DofRates& rates = motion.rates[k];
    const bool carries = part == z.body;  // the dof moves the virtual axes, too
    Force dq = inertia * rates.second + apply_rate(c, axis_dot.ang);
    if (!carries) dq += cross(axis, c.force);
    if (forces.applied) {
      const WrenchSum& applied = forces.applied[part];
      dq = dq - wrench_change(applied, axis);
      if (!carries) dq = dq - cross(axis, applied.wrench);
    }
    rows.add_q(k, against(z, dq));
    rows.add_v(k, against(z, inertia * rates.sum + apply_rate(c, axis.ang)));
    rows.add_acceleration(against(z, inertia * axis), k);
  });
}

// One side of a contact, connect or weld                                                (SEN-19)
void subtract_wrench(Sensing& s, const VirtualMotions& z, int k, int side, SensorRows& rows) {
  const Block& b = s.f.blocks.block[k];
  const BlockWrench& w = s.wrench(k);
  const double sign = w.sign[side];
  for (int r = 0; r < 3; r++) {
    const Motion axis = z.about_point(r, w.at[side]);
    double weight[kMaxRows];
    for (int i = 0; i < b.count; i++) weight[i] = -sign * dot(axis, w.unit[i]);
    s.add_force(rows, r, k, weight);
    for (int i = 0; i < b.n; i++) rows.q(r, b.dofs[i]) -= sign * dot(axis, w.change[side][i]);
  }
  for (int dof = last_dof(s.m, z.body); dof >= 0; dof = s.m.dof_parentid[dof]) {
    const Motion carry = dof_axis(s.d, dof);
    for (int r = 0; r < 3; r++) {
      const Motion turned = about(cross(carry, z.axis[r]), w.at[side] - z.reference);
      rows.q(r, dof) -= sign * dot(turned, w.value);
    }
  }
}

void subtract_blocks(Sensing& s, const VirtualMotions& z, SensorRows& rows) {
  for (int k = 0; k < s.f.blocks.count; k++) {
    const Block& b = s.f.blocks.block[k];
    if (!b.active || !has_wrench(s.m, b)) continue;
    const BlockWrench& w = s.wrench(k);
    const bool inside[2] = {z.holds(s.m, w.body[0]), z.holds(s.m, w.body[1])};
    if (b.geometry && inside[0] && inside[1]) continue;  // the forces on both sides cancel
    for (int side = 0; side < 2; side++) {
      if (inside[side]) subtract_wrench(s, z, k, side, rows);
    }
  }
}

// Spatial tendons that leave the subtree                                                (SEN-21)
void subtract_tendons(Sensing& s, const VirtualMotions& z, SensorRows& rows) {
  const ModelView& m = s.m;
  for (int t = 0; t < m.ntendon; t++) {
    if (tendon_is_fixed(m, t)) continue;
    const TendonPull pull = tendon_pull(m, s.d, t, z.body, z.axis, 3, s.arena);
    if (!pull.any) continue;
    const Tension& tension = s.tension(t);
    const int n = m.ten_J_rownnz[t];
    const int* dofs = m.ten_J_colind + m.ten_J_rowadr[t];
    for (int r = 0; r < 3; r++) {
      rows.add(r, -pull.value[r], tension.derivative);
      for (int k = 0; k < n; k++) rows.q(r, dofs[k]) -= tension.value * pull.change[r * n + k];
    }
  }
}

}  // namespace

VirtualMotions virtual_motions(const ModelView& m, const DataView& d, int sensor) {
  const int site = m.sensor_objid[sensor];
  VirtualMotions z;
  z.body = m.site_bodyid[site];
  z.reference = load3(d.subtree_com + 3 * m.body_rootid[z.body]);
  const Vec3 arm = load3(d.site_xpos + 3 * site) - z.reference;
  const Mat3 axes = load9(d.site_xmat + 9 * site);
  for (int k = 0; k < 3; k++) {
    const Vec3 e = column(axes, k);
    const bool force = m.sensor_type[sensor] == sensor::kForce;
    z.axis[k] = force ? Motion{{0, 0, 0}, e} : Motion{e, cross(arm, e)};
  }
  return z;
}

void sense_wrench(Sensing& s, int sensor, SensorRows& rows) {
  const VirtualMotions z = virtual_motions(s.m, s.d, sensor);
  add_inertial(s, z, rows);
  subtract_blocks(s, z, rows);
  subtract_tendons(s, z, rows);
}

}  // namespace mujacobian

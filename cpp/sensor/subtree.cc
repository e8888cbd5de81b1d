#include "sensor/subtree.h"

#include "layout/enums.h"
#include "sensor/type.h"
#include "tree/point.h"

namespace mujacobian {
namespace {

// Momentum of the part of a subtree that a dof moves, and its changes with the dof and its velocity
// (SEN-10)
struct MomentumChange {
  Force dq, dv;
};
MomentumChange momentum_change(Sensing& s, int dof, int body) {
  const Inertia inertia{s.d.crb + 10 * body};
  const Motion axis = dof_axis(s.d, dof);
  return {cross(axis, s.momentum()[body]) + inertia * load_motion(s.d.cdof_dot + 6 * dof),
          inertia * axis};
}

}  // namespace

Vec3 center_jacobian(const ModelView& m, const DataView& d, int root, int dof, int body) {
  const Point center = make_point(m, d, body, d.subtree_com + 3 * body);
  const Vec3 moved = point_jacobian(d, center, dof);
  if (body == root) return moved;
  const double total = m.body_subtreemass[root];
  return total < kMinVal ? Vec3{0, 0, 0} : (m.body_subtreemass[body] / total) * moved;
}

void sense_subtree(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const int type = m.sensor_type[sensor], root = m.sensor_objid[sensor];
  const double mass = m.body_subtreemass[root];
  if (type == sensor::kSubtreeCom) {
    return visit_subtree(
        m, root, [&](int k, int body) { rows.add_q(k, center_jacobian(m, s.d, root, k, body)); });
  }
  if (type == sensor::kSubtreeLinVel) {
    const double scale = 1 / (mass < kMinVal ? kMinVal : mass);
    return visit_subtree(m, root, [&](int k, int body) {
      MomentumChange change = momentum_change(s, k, body);
      rows.add_q(k, scale * change.dq.lin);
      rows.add_v(k, scale * change.dv.lin);
    });
  }
  // about the center of mass: h.ang - (center - P) x h.lin                               (SEN-11)
  const Vec3 linear = s.momentum()[root].lin;
  visit_subtree(m, root, [&](int k, int body) {
    MomentumChange change = momentum_change(s, k, body);
    const Vec3 arm = make_point(m, s.d, body, s.d.subtree_com + 3 * root).offset;
    const Vec3 moved = center_jacobian(m, s.d, root, k, body);
    rows.add_q(k, change.dq.ang - cross(arm, change.dq.lin) - cross(moved, linear));
    rows.add_v(k, change.dv.ang - cross(arm, change.dv.lin));
  });
}

}  // namespace mujacobian

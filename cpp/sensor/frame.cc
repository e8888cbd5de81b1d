#include "sensor/frame.h"

#include "layout/enums.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// The place of an object's frame in MuJoCo's arrays.
struct Pose {
  int body;
  const double *position, *axes;
  const double* quaternion;  // in the frame of the body; null: identity
};

Pose find_pose(const ModelView& m, const DataView& d, int type, int id) {
  const int body = object_body(m, type, id);
  switch (type) {
    case object::kXBody:
      return {body, d.xpos + 3 * id, d.xmat + 9 * id, nullptr};
    case object::kBody:
      return {body, d.xipos + 3 * id, d.ximat + 9 * id, m.body_iquat + 4 * id};
    case object::kGeom:
      return {body, d.geom_xpos + 3 * id, d.geom_xmat + 9 * id, m.geom_quat + 4 * id};
    case object::kSite:
      return {body, d.site_xpos + 3 * id, d.site_xmat + 9 * id, m.site_quat + 4 * id};
    default:
      return {body, d.cam_xpos + 3 * id, d.cam_xmat + 9 * id, m.cam_quat + 4 * id};
  }
}

// The object of a sensor and its reference, which is the frame of the world if there is none.
struct Pair {
  Frame object, reference;
  bool relative;

  Vec3 local(Vec3 x) const { return relative ? transpose_mul(reference.axes, x) : x; }
};

Pair make_pair(Sensing& s, int sensor) {
  const ModelView& m = s.m;
  Pair p{};
  p.object = make_frame(s, m.sensor_objtype[sensor], m.sensor_objid[sensor]);
  p.relative = m.sensor_refid[sensor] >= 0;
  if (p.relative) p.reference = make_frame(s, m.sensor_reftype[sensor], m.sensor_refid[sensor]);
  return p;
}

// x = p - p_ref in the axes of the reference                                             (SEN-3)
void sense_position(Sensing& s, int sensor, SensorRows& rows) {
  const Pair p = make_pair(s, sensor);
  for (int i = 0; i < p.object.n; i++) rows.add_q(p.object.dofs[i], p.local(p.object.moved[i]));
  const Vec3 x = p.object.position - p.reference.position;
  for (int i = 0; i < p.reference.n; i++) {
    Vec3 change = cross(x, p.reference.turned[i]) - p.reference.moved[i];
    rows.add_q(p.reference.dofs[i], p.local(change));
  }
}

// An axis of the object in the axes of the reference                                     (SEN-3)
void sense_axis(Sensing& s, int sensor, SensorRows& rows) {
  const Pair p = make_pair(s, sensor);
  const Vec3 axis = column(p.object.axes, s.m.sensor_type[sensor] - sensor::kFrameXAxis);
  for (int i = 0; i < p.object.n; i++) {
    rows.add_q(p.object.dofs[i], p.local(cross(p.object.turned[i], axis)));
  }
  for (int i = 0; i < p.reference.n; i++) {
    rows.add_q(p.reference.dofs[i], p.local(cross(axis, p.reference.turned[i])));
  }
}

// r = conj(r_ref) r_obj: dr = conj(r_ref) (0, w_obj - w_ref)/2 r_obj                     (SEN-4)
void sense_quaternion(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const int type[2] = {m.sensor_objtype[sensor], m.sensor_reftype[sensor]};
  const int id[2] = {m.sensor_objid[sensor], m.sensor_refid[sensor]};
  const bool relative = id[1] >= 0;
  const Quaternion right = object_quaternion(m, s.d, type[0], id[0]);
  Quaternion left{1, {0, 0, 0}};
  if (relative) left = conjugate(object_quaternion(m, s.d, type[1], id[1]));
  for (int k = 0; k < (relative ? 2 : 1); k++) {
    const double half = k ? -0.5 : 0.5;
    const int body = find_pose(m, s.d, type[k], id[k]).body;
    for (int dof = last_dof(m, body); dof >= 0; dof = m.dof_parentid[dof]) {
      double change[4];
      store_quaternion(change, left * Quaternion{0, half * dof_axis(s.d, dof).ang} * right);
      for (int r = 0; r < 4; r++) rows.q(r, dof) += change[r];
    }
  }
}

// The linear part is u - u_ref + (p - p_ref) x w_ref, the angular part w - w_ref         (SEN-6)
void sense_velocity(Sensing& s, int sensor, SensorRows& rows) {
  const bool linear = s.m.sensor_type[sensor] == sensor::kFrameLinVel;
  const Pair p = make_pair(s, sensor);
  const Frame &object = p.object, &reference = p.reference;
  const Motion v = frame_velocity(s, object);
  const Motion v_ref = p.relative ? frame_velocity(s, reference) : Motion{};
  const Vec3 x = object.position - reference.position;
  const Vec3 value = linear ? v.lin - v_ref.lin + cross(x, v_ref.ang) : v.ang - v_ref.ang;

  for (int i = 0; i < object.n; i++) {
    Motion dv = frame_velocity_dq(s, object, i);
    rows.add_q(object.dofs[i],
               p.local(linear ? dv.lin + cross(object.moved[i], v_ref.ang) : dv.ang));
  }
  for (int k = object.last; k >= 0; k = s.m.dof_parentid[k]) {
    Motion dv = frame_velocity_dv(s, object, k);
    rows.add_v(k, p.local(linear ? dv.lin : dv.ang));
  }
  if (!p.relative) return;

  for (int i = 0; i < reference.n; i++) {
    Motion dv = frame_velocity_dq(s, reference, i);
    Vec3 change = cross(value, reference.turned[i]);
    change += linear ? cross(x, dv.ang) - dv.lin - cross(reference.moved[i], v_ref.ang) : -dv.ang;
    rows.add_q(reference.dofs[i], p.local(change));
  }
  for (int k = reference.last; k >= 0; k = s.m.dof_parentid[k]) {
    Motion dv = frame_velocity_dv(s, reference, k);
    rows.add_v(k, p.local(linear ? cross(x, dv.ang) - dv.lin : -dv.ang));
  }
}

}  // namespace

Frame make_frame(Sensing& s, int type, int id) {
  const ModelView& m = s.m;
  const Pose pose = find_pose(m, s.d, type, id);
  Frame f;
  f.point = make_point(m, s.d, pose.body, pose.position);
  f.last = last_dof(m, pose.body);
  f.position = load3(pose.position);
  f.axes = load9(pose.axes);
  f.n = f.last < 0 ? 0 : s.f.tree.depth[f.last] + 1;
  int* dofs = s.arena.take<int>(f.n);
  Vec3* moved = s.arena.take<Vec3>(f.n);
  Vec3* turned = s.arena.take<Vec3>(f.n);
  for (int dof = f.last, i = f.n - 1; dof >= 0; dof = m.dof_parentid[dof], i--) {
    const Motion axis = dof_axis(s.d, dof);
    dofs[i] = dof;
    moved[i] = at_point(axis, f.point.offset);
    turned[i] = axis.ang;
  }
  f.dofs = dofs, f.moved = moved, f.turned = turned;
  bool follows = type == object::kCamera && m.cam_mode[id] != camera::kFixed;
  return follows ? follow(s, id, f) : f;
}

int object_body(const ModelView& m, int type, int id) {
  switch (type) {
    case object::kXBody:
    case object::kBody:
      return id;
    case object::kGeom:
      return m.geom_bodyid[id];
    case object::kSite:
      return m.site_bodyid[id];
    default:
      return m.cam_bodyid[id];
  }
}

Quaternion object_quaternion(const ModelView& m, const DataView& d, int type, int id) {
  const Pose pose = find_pose(m, d, type, id);
  const Quaternion body = load_quaternion(d.xquat + 4 * pose.body);
  return pose.quaternion ? body * load_quaternion(pose.quaternion) : body;
}

Motion frame_velocity(const Sensing& s, const Frame& frame) {
  Motion v = load_motion(s.d.cvel + 6 * frame.point.body);
  return {v.ang, at_point(v, frame.point.offset)};
}

Motion frame_velocity_dq(const Sensing& s, const Frame& frame, int i) {
  const int dof = frame.dofs[i];
  Motion v = load_motion(s.d.cvel + 6 * frame.point.body), dv{};
  if (carries(s, frame, dof)) {
    dv = velocity_dq(dof_axis(s.d, dof), load_motion(s.d.cdof_dot + 6 * dof), v);
  }
  return {dv.ang, at_point(dv, frame.point.offset) + cross(v.ang, frame.moved[i])};
}

void sense_frame(Sensing& s, int sensor, SensorRows& rows) {
  switch (s.m.sensor_type[sensor]) {
    case sensor::kFramePos:
      return sense_position(s, sensor, rows);
    case sensor::kFrameQuat:
      return sense_quaternion(s, sensor, rows);
    case sensor::kFrameLinVel:
    case sensor::kFrameAngVel:
      return sense_velocity(s, sensor, rows);
    default:
      return sense_axis(s, sensor, rows);
  }
}

}  // namespace mujacobian

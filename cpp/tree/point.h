// The motion of a material point of a body, and its derivatives, docs/derivations/kinematics.md.
#pragma once

#include "layout/topology.h"
#include "spatial/vector.h"
#include "tree/motion.h"

namespace mujacobian {

struct Point {
  int body;
  Vec3 offset;  // from the reference point of the body's tree
};

inline Point make_point(const ModelView& m, const DataView& d, int body, const double* position) {
  return {body, load3(position) - load3(d.subtree_com + 3 * m.body_rootid[body])};
}

inline Motion dof_axis(const DataView& d, int dof) { return load_motion(d.cdof + 6 * dof); }

// dp/dq_j for a dof that moves the body of the point
inline Vec3 point_jacobian(const DataView& d, Point p, int j) {
  return at_point(dof_axis(d, j), p.offset);
}

// d2p/(dq_j dq_k), the change of column j when dof k moves: w_k x J_j if k moves the axis of j,
// w_j x J_k otherwise                                                                   (KIN-3)
inline Vec3 point_hessian(const ModelView& m, const DataView& d, Point p, int j, int k) {
  if (moves_axis(m, k, j)) return cross(load3(d.cdof + 6 * k), point_jacobian(d, p, j));
  return cross(load3(d.cdof + 6 * j), point_jacobian(d, p, k));
}

// Velocity and acceleration of a point at the acceleration of the sweep, or their derivatives.
struct PointMotion {
  Vec3 v, a;
};
inline PointMotion point_motion(const DataView& d, const MotionSweep& sweep, Point p) {
  Motion v = load_motion(d.cvel + 6 * p.body), a = sweep.acceleration[p.body];
  Vec3 pv = at_point(v, p.offset);
  return {pv, at_point(a, p.offset) + cross(v.ang, pv)};
}
// Their change if the motion (v, a) of the body changes by (dv, da) and the point moves by dp.
inline PointMotion point_motion_change(Motion v, Motion a, Vec3 offset, Motion dv, Motion da,
                                       Vec3 dp) {
  Vec3 pv = at_point(v, offset), dpv = at_point(dv, offset) + cross(v.ang, dp);
  return {dpv, at_point(da, offset) + cross(a.ang, dp) + cross(dv.ang, pv) + cross(v.ang, dpv)};
}
// Their derivatives with respect to the position and the velocity of a dof that moves the body.
inline PointMotion point_motion_dq(const DataView& d, const MotionSweep& sweep, Point p, int k) {
  Motion v = load_motion(d.cvel + 6 * p.body), a = sweep.acceleration[p.body];
  Motion axis = dof_axis(d, k), axis_dot = load_motion(d.cdof_dot + 6 * k);
  return point_motion_change(v, a, p.offset, velocity_dq(axis, axis_dot, v),
                             acceleration_dq(axis, axis_dot, sweep.rates[k], v, a),
                             at_point(axis, p.offset));
}
inline PointMotion point_motion_dv(const DataView& d, const MotionSweep& sweep, Point p, int k) {
  Motion v = load_motion(d.cvel + 6 * p.body), axis = dof_axis(d, k);
  Motion da = acceleration_dv(axis, sweep.rates[k], v);
  Vec3 dpv = at_point(axis, p.offset), pv = at_point(v, p.offset);
  return {dpv, at_point(da, p.offset) + cross(axis.ang, pv) + cross(v.ang, dpv)};
}

}  // namespace mujacobian

// Motion of a material point of a body and its second derivative, docs/derivations/kinematics.md.
#pragma once

#include "smooth/topology.h"
#include "spatial/vector.h"

namespace mujacobian {

struct Point {
  int body;
  Vec3 offset;  // from the reference point of the body's tree
};

inline Point make_point(const ModelView& m, const DataView& d, int body, const double* position) {
  return {body, load3(position) - load3(d.subtree_com + 3 * m.body_rootid[body])};
}

inline Motion dof_axis(const DataView& d, int dof) { return load_motion(d.cdof + 6 * dof); }

// dp/dq_j for a dof that moves the point's body
inline Vec3 point_jacobian(const DataView& d, Point p, int j) {
  return at_point(dof_axis(d, j), p.offset);
}

// d2p/(dq_j dq_k), the change of column j when dof k moves: w_k x J_j if k moves the axis of j,
// w_j x J_k otherwise                                                                   (KIN-3)
inline Vec3 point_hessian(const ModelView& m, const DataView& d, Point p, int j, int k) {
  if (moves_axis(m, k, j)) return cross(load3(d.cdof + 6 * k), point_jacobian(d, p, j));
  return cross(load3(d.cdof + 6 * j), point_jacobian(d, p, k));
}

}  // namespace mujacobian

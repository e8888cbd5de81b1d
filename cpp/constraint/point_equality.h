// The geometry of connect and weld equalities.
#pragma once

#include "constraint/block.h"
#include "layout/views.h"
#include "spatial/quaternion.h"
#include "tree/point.h"

namespace mujacobian {

// Two material points that the equality keeps together, for a weld also two frames.
struct PointEquality {
  Point point[2];
  bool weld;
  double scale;      // torquescale
  Mat3 frame1;       // frame of the second body or site
  Quaternion error;  // conj(q_1) q_0 relpose
};

PointEquality point_equality(const ModelView& m, const DataView& d, int equality);

// Positions and Jdot v of the rotation rows of a weld.
struct RotationRows {
  double pos[3], bias[3];
};

// Returns the rotation rows of a weld and writes their Jacobian (3, n), with the block's stride.
// The rows are linear in the error quaternion and in the scale, which need not be those of the
// weld.
RotationRows rotation_rows(const ModelView& m, const DataView& d, const Block& b,
                           const BlockMotion& motion, const PointEquality& h, double* jacobian);

}  // namespace mujacobian

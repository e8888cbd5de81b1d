// The geometry of connect and weld equalities.
#pragma once

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

}  // namespace mujacobian

// Small helpers for points and directions that move with a body.
#pragma once

#include <type_traits>

#include "spatial/dual.h"
#include "spatial/packet.h"
#include "spatial/vector.h"

namespace mujacobian {

// The formulas of this folder are templates over the numbers S: doubles; packets, for the six unit
// motions of one geom at once; dual numbers with derivatives with respect to these six motions, for
// second derivatives.
using ContactDual = Dual<6>;

// The part of v that is perpendicular to the unit vector n.
template <class S>
Vec3T<S> across(const Vec3T<S>& v, const Vec3T<S>& n) {
  return v - dot(v, n) * n;
}

// Velocity of the material point p of a body that moves by `motion` about the point `from`.
template <class S>
Vec3T<S> velocity(const MotionT<S>& motion, const Vec3T<S>& from, const Vec3T<S>& p) {
  return at_point(motion, p - from);
}

// The functions below return a point, a direction, a frame or a linear map of a body after an
// infinitesimal motion of this body: the value of `motion` is zero, and its derivatives are not.
template <class S>
Vec3T<S> moved_point(const MotionT<S>& motion, const std::type_identity_t<Vec3T<S>>& from,
                     const std::type_identity_t<Vec3T<S>>& p) {
  return p + velocity(motion, from, p);
}
template <class S>
Vec3T<S> turned(const MotionT<S>& motion, const std::type_identity_t<Vec3T<S>>& direction) {
  return direction + cross(motion.ang, direction);
}
template <class S>
Mat3T<S> turned_frame(const MotionT<S>& motion, const std::type_identity_t<Mat3T<S>>& frame) {
  return frame + skew(motion.ang) * frame;
}
template <class S>
Mat3T<S> turned_map(const MotionT<S>& motion, const std::type_identity_t<Mat3T<S>>& map) {
  const Mat3T<S> turn = skew(motion.ang);
  return map + turn * map + map * transposed(turn);
}

}  // namespace mujacobian

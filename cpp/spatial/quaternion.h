// Quaternions (w, v) that represent rotations, in MuJoCo's order.
#pragma once

#include <cmath>

#include "spatial/vector.h"

namespace mujacobian {

struct Quaternion {
  double w;
  Vec3 v;
};

inline Quaternion load_quaternion(const double* q) { return {q[0], load3(q + 1)}; }
inline void store_quaternion(double* p, Quaternion q) { p[0] = q.w, store3(p + 1, q.v); }
inline Quaternion conjugate(Quaternion q) { return {q.w, -q.v}; }
inline Quaternion operator*(Quaternion a, Quaternion b) {
  return {a.w * b.w - dot(a.v, b.v), a.w * b.v + b.w * a.v + cross(a.v, b.v)};
}
inline Quaternion normalized(Quaternion q) {
  double scale = 1 / std::sqrt(q.w * q.w + dot(q.v, q.v));
  return {scale * q.w, scale * q.v};
}

// exp(w / 2), the quaternion of the rotation vector w
inline Quaternion quaternion_exp(Vec3 w) {
  double half = norm(w) / 2;
  // tie: no rotation
  double scale = half > 0 ? std::sin(half) / (2 * half) : 0.5;
  return {std::cos(half), scale * w};
}

// R(q) for a unit quaternion
inline Mat3 rotation(Quaternion q) {
  const double w = q.w, x = q.v.x, y = q.v.y, z = q.v.z;
  return {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), 2 * (x * y + w * z),
           1 - 2 * (x * x + z * z), 2 * (y * z - w * x), 2 * (x * z - w * y), 2 * (y * z + w * x),
           1 - 2 * (x * x + y * y)}};
}

// R(q)^T a for a unit quaternion
inline Vec3 rotate_back(Quaternion q, Vec3 a) {
  Vec3 t = 2 * cross(a, q.v);
  return a + q.w * t + cross(t, q.v);
}

}  // namespace mujacobian

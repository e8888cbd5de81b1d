// Four vectors side by side, one per lane, which are stored by component.
#pragma once

#include "linear/lanes.h"
#include "spatial/vector.h"

namespace mujacobian {

struct LaneVec3 {
  Lanes x, y, z;
};

// The components are `stride` numbers apart.
inline LaneVec3 load_vectors(const double* p, int stride) {
  return {load_lanes(p), load_lanes(p + stride), load_lanes(p + 2 * stride)};
}
inline void store_vectors(double* p, int stride, const LaneVec3& v) {
  store_lanes(p, v.x), store_lanes(p + stride, v.y), store_lanes(p + 2 * stride, v.z);
}
inline LaneVec3 operator+(const LaneVec3& a, const LaneVec3& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
inline LaneVec3 cross(const LaneVec3& a, Vec3 b) {
  const Lanes x = broadcast(b.x), y = broadcast(b.y), z = broadcast(b.z);
  return {a.y * z - a.z * y, a.z * x - a.x * z, a.x * y - a.y * x};
}
inline Lanes dot(const LaneVec3& a, Vec3 b) {
  return a.x * broadcast(b.x) + a.y * broadcast(b.y) + a.z * broadcast(b.z);
}

}  // namespace mujacobian

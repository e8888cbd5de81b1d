// Spatial vectors stored by component, for loops that process eight of them at once.
#pragma once

#include "layout/arena.h"
#include "linear/lanes.h"
#include "spatial/vector.h"

namespace mujacobian {

// Component c of vector k is at [c * stride + k].
struct Vectors {
  double* p;
  int stride;
  const double* at(int c, int k) const { return p + c * stride + k; }
  void put(int k, Vec3 ang) const {
    double* q = p + k;
    q[0] = ang.x, q[stride] = ang.y, q[2 * stride] = ang.z;
  }
  void put(int k, Vec3 ang, Vec3 lin) const {
    put(k, ang);
    double* q = p + 3 * stride + k;
    q[0] = lin.x, q[stride] = lin.y, q[2 * stride] = lin.z;
  }
};

// Returns room for n vectors with six components, or with three, which are zero. It is padded
// because a pair of lanes reads beyond the last vector.
inline Vectors make_vectors(int n, Arena& arena, int components = 6) {
  int stride = round_to_line(n + 2 * kLanes - 1);
  return {arena.zeros<double>(components * stride), stride};
}

// Eight entries that are processed at once.
struct LanePair {
  Lanes a, b;
};
inline void accumulate(LanePair& sum, double f, const double* lanes) {
  Lanes factor = broadcast(f);
  sum.a += factor * load_lanes(lanes);
  sum.b += factor * load_lanes(lanes + kLanes);
}
inline void store(double* p, LanePair v) { store_lanes(p, v.a), store_lanes(p + kLanes, v.b); }

// Stores the first n of eight entries.
inline void store(double* p, LanePair v, int n) {
  if (n >= 2 * kLanes) return store(p, v);
  double all[2 * kLanes];
  store(all, v);
  for (int k = 0; k < n; k++) p[k] = all[k];
}

}  // namespace mujacobian

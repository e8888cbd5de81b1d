// Sums over the subtree of each body, for the derivative of inverse dynamics,
// docs/derivations/inverse_dynamics.md.
#pragma once

#include "tree/motion.h"

namespace mujacobian {

struct Composite {
  Force force;    // F = I A + V x* I V
  Mat3 rate;      // N, the angular block of B = V x* I - I V x + (I V) x~*            (ID-8)
  Vec3 momentum;  // linear momentum p
};

// Returns B x = (N w, -2 p x w), which depends only on the angular part w of x.          (ID-8)
inline Force apply_rate(const Composite& c, Vec3 w) {
  return {c.rate * w, -2.0 * cross(c.momentum, w)};
}

// Returns the angular part of B^T x. Its linear part is zero.
inline Vec3 apply_rate_transposed(const Composite& c, Motion x) {
  return transpose_mul(c.rate, x.ang) + 2.0 * cross(c.momentum, x.lin);
}

// Returns N = d/dt(rotational inertia about the fixed reference point) - [l]x of one body at
// velocity v, with its angular momentum l. (ID-8)
inline Mat3 inertia_rate(Inertia inertia, Motion v, Vec3 l) {
  const double* i = inertia.i;
  // columns of [w]x J; with -J [w]x, its symmetric part is doubled
  Vec3 x = cross(v.ang, {i[0], i[3], i[4]});
  Vec3 y = cross(v.ang, {i[3], i[1], i[5]});
  Vec3 z = cross(v.ang, {i[4], i[5], i[2]});
  // 2 (u . c) 1 - u c^T - c u^T
  Vec3 u = v.lin, c = inertia.moment();
  double ux = u.x * c.x, uy = u.y * c.y, uz = u.z * c.z;
  double xx = 2 * (x.x + uy + uz), yy = 2 * (y.y + ux + uz), zz = 2 * (z.z + ux + uy);
  double xy = x.y + y.x - u.x * c.y - c.x * u.y;
  double xz = x.z + z.x - u.x * c.z - c.x * u.z;
  double yz = y.z + z.y - u.y * c.z - c.y * u.z;
  return {{xx, xy + l.z, xz - l.y, xy - l.z, yy, yz + l.x, xz + l.y, yz - l.x, zz}};
}

// Returns the sums of every body except the world, at the given accelerations of the bodies.
Composite* composites(const ModelView& m, const DataView& d, const Motion* acceleration,
                      Arena& arena);

}  // namespace mujacobian

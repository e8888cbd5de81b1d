// Matrix algebra for functions of rotations: first and second derivatives of tr(exp(t) M) with
// respect to a left perturbation t, docs/derivations/rods.md.
#pragma once

#include "spatial/rotation.h"

namespace mujacobian::rods {

inline Mat3 difference(const Mat3& a, const Mat3& b) { return a + (-1.0) * b; }
inline double trace(const Mat3& a) { return a.m[0] + a.m[4] + a.m[8]; }
inline double inner(const Mat3& a, const Mat3& b) {
  double sum = 0;
  for (int i = 0; i < 9; i++) sum += a.m[i] * b.m[i];
  return sum;
}
inline Mat3 scaled_identity(double s) { return {{s, 0, 0, 0, s, 0, 0, 0, s}}; }
inline Mat3 symmetric_part(const Mat3& a) { return 0.5 * (a + transposed(a)); }
// a b^T
inline Mat3 times_transposed(const Mat3& a, const Mat3& b) {
  Mat3 c;
  for (int r = 0; r < 3; r++)
    for (int k = 0; k < 3; k++)
      c.m[3 * r + k] = a.m[3 * r] * b.m[3 * k] + a.m[3 * r + 1] * b.m[3 * k + 1] +
                       a.m[3 * r + 2] * b.m[3 * k + 2];
  return c;
}
// a^T b
inline Mat3 transposed_times(const Mat3& a, const Mat3& b) { return transposed(a) * b; }

// Returns the vector a with M - M^T = [a]x, so that tr([t]x M) = -t . a                 (ROD-3)
inline Vec3 axial(const Mat3& m) {
  return {m(2, 1) - m(1, 2), m(0, 2) - m(2, 0), m(1, 0) - m(0, 1)};
}

// Returns the gradient of a function with respect to a left perturbation of R, given its derivative
// `bar` with respect to the entries of R: the sum of column(R, k) x column(bar, k) over k (ROD-4).
inline Vec3 turn(const Mat3& R, const Mat3& bar) { return axial(times_transposed(bar, R)); }

// Returns the part of the second derivative of f(exp(t) p) at t = 0 that is due to the second
// derivative of exp: (g p^T + p g^T) / 2 - (g . p) 1, where g is the gradient of f      (ROD-7).
inline Mat3 bend_of_arc(Vec3 p, Vec3 g) {
  return symmetric_part(outer(g, p)) + scaled_identity(-dot(g, p));
}

// Removes rounding errors of a rotation, by one step of an iteration to the nearest rotation.
inline Mat3 orthonormal(const Mat3& R) {
  return 0.5 * (R * difference(scaled_identity(3), transposed_times(R, R)));
}

}  // namespace mujacobian::rods

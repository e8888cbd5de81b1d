// R = exp([r]x) = 1 + c_1(t) [r]x + c_2(t) [r]x^2 with t = |r|^2, and its inverse.
#pragma once

#include <algorithm>
#include <cmath>

#include "spatial/vector.h"

namespace mujacobian::rods {

// c_1, c_2 and their first two derivatives with respect to t, without cancellation: c_k' = (k
// c_{k+2} - c_{k+1}) / 2, with the c_k of spatial/rotation.h.
struct Coefficients {
  double c1, c2, d1, d2, dd1, dd2;

  explicit Coefficients(double t) {
    double c3, c4, c5, c6;
    if (t > 0.5) {
      const double theta = std::sqrt(t), over = 1 / t;
      c1 = std::sin(theta) / theta;
      c2 = (1 - std::cos(theta)) * over;
      c3 = (1 - c1) * over;
      c4 = (0.5 - c2) * over;
      c5 = (1.0 / 6 - c3) * over;
      c6 = (1.0 / 24 - c4) * over;
    } else {
      constexpr double kOdd[] = {1. / 120,      1. / 5040,       1. / 362880,
                                 1. / 39916800, 1. / 6227020800, 1. / 1307674368000};
      constexpr double kEven[] = {1. / 720,       1. / 40320,       1. / 3628800,
                                  1. / 479001600, 1. / 87178291200, 1. / 20922789888000};
      c5 = alternating(kOdd, t);
      c6 = alternating(kEven, t);
      c4 = 1.0 / 24 - t * c6;
      c3 = 1.0 / 6 - t * c5;
      c2 = 0.5 - t * c4;
      c1 = 1 - t * c3;
    }
    d1 = 0.5 * (c3 - c2);
    d2 = c4 - 0.5 * c3;
    dd1 = 0.25 * (3 * (c5 - c4) + c3);
    dd2 = 0.25 * (8 * c6 - 5 * c5 + c4);
  }

 private:
  static double alternating(const double (&a)[6], double t) {
    return a[0] - t * (a[1] - t * (a[2] - t * (a[3] - t * (a[4] - t * a[5]))));
  }
};

// Returns the vector with exp([r]x) = R and |r| <= pi, from the largest entry of the quaternion
inline Vec3 rotation_log(const Mat3& R) {
  const double diagonal[4] = {R(0, 0) + R(1, 1) + R(2, 2), R(0, 0), R(1, 1), R(2, 2)};
  const int k = static_cast<int>(std::max_element(diagonal, diagonal + 4) - diagonal);
  Vec3 v;
  double w;
  if (k == 0) {
    w = 1 + diagonal[0];
    v = {R(2, 1) - R(1, 2), R(0, 2) - R(2, 0), R(1, 0) - R(0, 1)};
  } else {
    const int i = k - 1, j = (i + 1) % 3, l = (i + 2) % 3;
    double q[3];
    q[i] = 1 + R(i, i) - R(j, j) - R(l, l);
    q[j] = R(i, j) + R(j, i);
    q[l] = R(i, l) + R(l, i);
    v = load3(q);
    w = R(l, j) - R(j, l);
    if (w < 0) v = -v, w = -w;
  }
  const double sine = norm(v);
  return sine == 0 ? Vec3{} : (2 * std::atan2(sine, w) / sine) * v;
}

}  // namespace mujacobian::rods

// Exponential and logarithm of rotations and their Jacobians, docs/derivations/rotation.md.
#pragma once

#include <numbers>

#include "spatial/vector.h"

namespace mujacobian {

// c_k(t) = sum_n (-t)^n / (2n + k)!, with t = theta^2: c_0 = cos, c_1 = sin/theta,
// c_2 = (1 - cos)/theta^2, c_3 = (theta - sin)/theta^3, c_{k+2} = (1/k! - c_k)/t. Below t = 1 the
// series is used, which has no cancellation.
template <int k>
inline double exp_coefficient(double t) {
  // tie: series of a rotation
  if (t < 1) {
    // the 11th term is below 1e-22 of the first
    double sum = 0, term = 1;
    for (int i = 2; i <= k; i++) term /= i;
    for (int n = 0; n < 11; n++) {
      sum += term;
      term *= -t / ((2 * n + k + 1) * (2 * n + k + 2));
    }
    return sum;
  }
  double theta = std::sqrt(t);
  if constexpr (k == 0) return std::cos(theta);
  if constexpr (k == 1) return std::sin(theta) / theta;
  if constexpr (k == 2) return (1 - std::cos(theta)) / t;
  if constexpr (k == 3) return (theta - std::sin(theta)) / (t * theta);
  if constexpr (k == 4) return (0.5 - (1 - std::cos(theta)) / t) / t;
  if constexpr (k == 5) return (1.0 / 6 - (theta - std::sin(theta)) / (t * theta)) / t;
}

// d c_k / dt                                                                              (ROT-8)
template <int k>
inline double exp_coefficient_slope(double t) {
  return 0.5 * (k * exp_coefficient<k + 2>(t) - exp_coefficient<k + 1>(t));
}

// R = exp([w]x)                                                                          (ROT-1)
inline Mat3 rotation_exp(Vec3 w) {
  double t = dot(w, w);
  Mat3 s = skew(w);
  return identity3() + exp_coefficient<1>(t) * s + exp_coefficient<2>(t) * (s * s);
}

// Jr(w), with exp(w + dw) = exp(w) exp(Jr dw)                                            (ROT-2)
inline Mat3 right_jacobian(Vec3 w) {
  double t = dot(w, w);
  Mat3 s = skew(w);
  return identity3() + (-exp_coefficient<2>(t)) * s + exp_coefficient<3>(t) * (s * s);
}

// d(Jr(w)^T a)/dw, which is symmetric up to a multiple of [a]x                            (ROT-9)
inline Mat3 right_jacobian_transposed_change(Vec3 w, Vec3 a) {
  double t = dot(w, w), c3 = exp_coefficient<3>(t);
  Vec3 once = cross(w, a), twice = cross(w, once);
  Vec3 slope = 2 * exp_coefficient_slope<2>(t) * once + 2 * exp_coefficient_slope<3>(t) * twice;
  return outer(slope, w) + (-exp_coefficient<2>(t)) * skew(a) +
         c3 * (dot(w, a) * identity3() + outer(w, a) + (-2.0) * outer(a, w));
}

// Jr(w)^-1, finite up to |w| = 2 pi                                                      (ROT-3)
inline Mat3 right_jacobian_inverse(Vec3 w) {
  double t = dot(w, w);
  Mat3 s = skew(w);
  // (1 - (theta/2) cot(theta/2)) / theta^2 without cancellation
  double kappa = (exp_coefficient<3>(t) - 2 * exp_coefficient<4>(t)) / (2 * exp_coefficient<2>(t));
  return identity3() + 0.5 * s + kappa * (s * s);
}

// Returns the derivative of kappa(t), where Jr^-1(w) = 1 + [w]x / 2 + kappa(t) [w]x^2 and t =
// |w|^2. Below t = 1 it uses kappa(t) = sum_n 2 zeta(2n) t^(n-1) / (2 pi)^(2n), n = 1, 2, ...
// (ROT-6)
inline double kappa_slope(double t) {
  if (t < 1) {
    constexpr double kZeta[] = {1.0823232337111382, 1.0173430619844491, 1.0040773561979443,
                                1.0009945751278181, 1.0002460865533080, 1.0000612481350587,
                                1.0000152822594086, 1.0000038172932650, 1.0000009539620339};
    const double step = 1 / (4 * std::numbers::pi * std::numbers::pi);
    double sum = 0, power = 2 * step * step;
    for (int n = 2; n < 11; n++, power *= step * t) sum += (n - 1) * kZeta[n - 2] * power;
    return sum;
  }
  double theta = std::sqrt(t), y = theta / 2, sine = std::sin(y), cotangent = std::cos(y) / sine;
  double kappa = (1 - y * cotangent) / t;
  return ((y / (sine * sine) - cotangent) / (4 * theta) - kappa) / t;
}

// d(Jr^-1(w) v)/dw                                                                        (ROT-7)
inline Mat3 right_jacobian_inverse_change(Vec3 w, Vec3 v) {
  double t = dot(w, w);
  double kappa = (exp_coefficient<3>(t) - 2 * exp_coefficient<4>(t)) / (2 * exp_coefficient<2>(t));
  Vec3 once = cross(w, v), twice = cross(w, once);
  Mat3 change = (-0.5) * skew(v) + (-kappa) * (skew(once) + skew(w) * skew(v));
  return change + 2 * kappa_slope(t) * outer(twice, w);
}

// Returns the second derivative of g . log(exp(w) exp(z)) with respect to z at zero, which is
// symmetric.                                                                              (ROT-10)
inline Mat3 log_curvature(Vec3 w, Vec3 g) {
  const Mat3 inverse = right_jacobian_inverse(w);
  Mat3 bend;
  for (int k = 0; k < 3; k++) {
    Mat3 change = right_jacobian_inverse_change(w, unit3(k)) * inverse;
    store3(bend.m + 3 * k, transpose_mul(change, g));
  }
  return 0.5 * (bend + transposed(bend));
}

// log(conj(b) a) as in MuJoCo's mju_subQuat: the rotation vector of norm at most pi that rotates b
// into a, in the frame of b. `a` need not have unit norm.
inline Vec3 quaternion_difference(const double a[4], const double b[4]) {
  double w = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
  Vec3 av = load3(a + 1), bv = load3(b + 1);
  Vec3 v = b[0] * av - a[0] * bv - cross(bv, av);
  double s = norm(v);
  if (s == 0) return {0, 0, 0};
  double angle = 2 * std::atan2(s, w);
  // tie: half a turn
  if (angle > std::numbers::pi) angle -= 2 * std::numbers::pi;
  return (angle / s) * v;
}

}  // namespace mujacobian

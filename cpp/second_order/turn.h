// Second derivatives of rotations: of the position update q+ = q exp(h v+) of ball and free joints,
// and of the rate Jr^-1(u) v of a rotation vector u.
#pragma once

#include "spatial/rotation.h"

namespace mujacobian {

// Second derivatives of lambda . log(q+(0)^-1 q+(z, e)) with respect to the rotation z of q and the
// change e of the rotation vector h v+, at zero. That with respect to z alone is zero.    (HES-4)
struct TurnCurvature {
  Mat3 mixed;  // row: z, column: e
  Mat3 turn;   // e and e
};

inline TurnCurvature turn_curvature(Vec3 turn, Vec3 lambda) {
  const Mat3 change = right_jacobian_transposed_change(turn, lambda);
  return {(-0.5) * (rotation_exp(turn) * skew(lambda) * right_jacobian(turn)),
          0.5 * (change + transposed(change))};
}

// Returns the second derivative of kappa(t), where Jr^-1(w) = 1 + [w]x / 2 + kappa(t) [w]x^2 and
// t = |w|^2.                                                                             (ROT-11)
inline double kappa_curvature(double t) {
  if (t < 1) {
    constexpr double kZeta[] = {1.0173430619844491, 1.0040773561979443, 1.0009945751278181,
                                1.0002460865533080, 1.0000612481350587, 1.0000152822594086,
                                1.0000038172932650, 1.0000009539620339, 1.0000002384505027,
                                1.0000000596081891};
    const double step = 1 / (4 * std::numbers::pi * std::numbers::pi);
    double sum = 0, power = 2 * step * step * step;
    for (int n = 3; n < 13; n++, power *= step * t) {
      sum += (n - 1) * (n - 2) * kZeta[n - 3] * power;
    }
    return sum;
  }
  const double y = 0.5 * std::sqrt(t), sine = std::sin(y), cotangent = std::cos(y) / sine;
  const double square = 1 / (sine * sine);
  const double bend = (2 * cotangent * square - square / y - cotangent / (y * y)) / (64 * y);
  return (-bend - 2 * kappa_slope(t)) / t;
}

// Second derivatives of lambda . Jr^-1(u) v.                                             (ROT-12)
struct RateCurvature {
  Mat3 turn;   // u and u
  Mat3 mixed;  // row: u, column: v
};

inline RateCurvature rate_curvature(Vec3 u, Vec3 v, Vec3 lambda) {
  const double t = dot(u, u), slope = kappa_slope(t), bend = kappa_curvature(t);
  const double kappa =
      (exp_coefficient<3>(t) - 2 * exp_coefficient<4>(t)) / (2 * exp_coefficient<2>(t));
  // lambda . [u]x^2 v, and its first and second derivatives
  const double value = dot(u, v) * dot(u, lambda) - t * dot(v, lambda);
  const Vec3 first = dot(u, lambda) * v + dot(u, v) * lambda - 2 * dot(v, lambda) * u;
  const Mat3 second = outer(v, lambda) + outer(lambda, v) + (-2 * dot(v, lambda)) * identity3();
  RateCurvature c;
  c.turn = kappa * second + (2 * slope) * (outer(u, first) + outer(first, u)) +
           value * ((2 * slope) * identity3() + (4 * bend) * outer(u, u));
  for (int k = 0; k < 3; k++) {
    const Vec3 column_k = transpose_mul(right_jacobian_inverse_change(u, unit3(k)), lambda);
    c.mixed(0, k) = column_k.x, c.mixed(1, k) = column_k.y, c.mixed(2, k) = column_k.z;
  }
  return c;
}

}  // namespace mujacobian

// Second-order forward-mode automatic differentiation: numbers that carry their gradient and
// Hessian with respect to N variables.
#pragma once

#include <cmath>

namespace mujacobian::rods {

template <int N, bool kSecond>
struct Jet {
  static constexpr int kPairs = kSecond ? N * N : 0;

  double v = 0;
  double g[N] = {};
  // full rows, which are faster than half of them; C++ has no empty arrays, hence one more entry
  double h[kPairs + 1] = {};

  Jet() = default;
  Jet(double value) : v(value) {}  // NOLINT: constants convert implicitly
  static Jet variable(double value, int i) {
    Jet made(value);
    made.g[i] = 1;
    return made;
  }
  double hessian(int i, int j) const { return h[N * i + j]; }

  // Returns f(*this), given f and its first two derivatives
  Jet chain(double f, double df, double ddf) const {
    Jet made(f);
    for (int i = 0; i < N; i++) made.g[i] = df * g[i];
    if constexpr (kSecond) {
      for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) made.h[N * i + j] = df * h[N * i + j] + ddf * g[i] * g[j];
    }
    return made;
  }

  friend Jet operator+(Jet a, const Jet& b) {
    a.v += b.v;
    for (int i = 0; i < N; i++) a.g[i] += b.g[i];
    for (int k = 0; k < kPairs; k++) a.h[k] += b.h[k];
    return a;
  }
  friend Jet operator-(Jet a, const Jet& b) {
    a.v -= b.v;
    for (int i = 0; i < N; i++) a.g[i] -= b.g[i];
    for (int k = 0; k < kPairs; k++) a.h[k] -= b.h[k];
    return a;
  }
  friend Jet operator*(double s, Jet a) {
    a.v *= s;
    for (int i = 0; i < N; i++) a.g[i] *= s;
    for (int k = 0; k < kPairs; k++) a.h[k] *= s;
    return a;
  }
  friend Jet operator*(const Jet& a, const Jet& b) {
    Jet made(a.v * b.v);
    for (int i = 0; i < N; i++) made.g[i] = a.v * b.g[i] + b.v * a.g[i];
    if constexpr (kSecond) {
      for (int k = 0; k < kPairs; k++) made.h[k] = a.v * b.h[k] + b.v * a.h[k];
      for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) made.h[N * i + j] += a.g[i] * b.g[j] + b.g[i] * a.g[j];
    }
    return made;
  }
  friend Jet inverse_root(const Jet& a) {  // 1 / sqrt(a)
    const double f = 1 / std::sqrt(a.v), df = -0.5 * f / a.v;
    return a.chain(f, df, -1.5 * df / a.v);
  }
};

}  // namespace mujacobian::rods

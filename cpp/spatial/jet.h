// Numbers with their first and second derivatives with respect to N variables. As with dual
// numbers, comparisons use the value only.
#pragma once

#include <cmath>

namespace mujacobian {

template <int N>
struct Jet {
  static constexpr int kPairs = N * (N + 1) / 2;
  double v, d[N];
  double h[kPairs];  // lower triangle of the second derivatives, by rows
  Jet() = default;
  Jet(double value) : v(value), d{}, h{} {}  // a constant

  double second(int i, int k) const {
    return i < k ? h[k * (k + 1) / 2 + i] : h[i * (i + 1) / 2 + k];
  }
};

// Returns variable number k with this value.
template <int N>
Jet<N> jet_variable(double value, int k) {
  Jet<N> x(value);
  x.d[k] = 1;
  return x;
}

// f(x), from the value of f and its first two derivatives
template <int N>
Jet<N> chain(double value, double dx, double dxx, const Jet<N>& x) {
  Jet<N> r;
  r.v = value;
  for (int i = 0, p = 0; i < N; i++) {
    r.d[i] = dx * x.d[i];
    for (int k = 0; k <= i; k++, p++) r.h[p] = dx * x.h[p] + dxx * x.d[i] * x.d[k];
  }
  return r;
}

template <int N>
Jet<N> operator+(const Jet<N>& a, const Jet<N>& b) {
  Jet<N> r;
  r.v = a.v + b.v;
  for (int i = 0; i < N; i++) r.d[i] = a.d[i] + b.d[i];
  for (int p = 0; p < Jet<N>::kPairs; p++) r.h[p] = a.h[p] + b.h[p];
  return r;
}
template <int N>
Jet<N> operator*(double s, const Jet<N>& a) {
  return chain(s * a.v, s, 0, a);
}
template <int N>
Jet<N> operator-(const Jet<N>& a) {
  return -1.0 * a;
}
template <int N>
Jet<N> operator-(const Jet<N>& a, const Jet<N>& b) {
  return a + -b;
}
template <int N>
Jet<N> operator*(const Jet<N>& a, const Jet<N>& b) {
  Jet<N> r;
  r.v = a.v * b.v;
  for (int i = 0, p = 0; i < N; i++) {
    r.d[i] = a.v * b.d[i] + b.v * a.d[i];
    for (int k = 0; k <= i; k++, p++) {
      r.h[p] = a.v * b.h[p] + b.v * a.h[p] + a.d[i] * b.d[k] + b.d[i] * a.d[k];
    }
  }
  return r;
}
template <int N>
Jet<N> operator/(double s, const Jet<N>& a) {
  const double inverse = 1 / a.v, value = s * inverse;
  return chain(value, -value * inverse, 2 * value * inverse * inverse, a);
}
template <int N>
Jet<N> operator/(const Jet<N>& a, const Jet<N>& b) {
  return a * (1.0 / b);
}
template <int N>
Jet<N> operator+(double s, const Jet<N>& a) {
  Jet<N> r = a;
  r.v += s;
  return r;
}
template <int N>
Jet<N> operator+(const Jet<N>& a, double s) {
  return s + a;
}
template <int N>
Jet<N> operator-(const Jet<N>& a, double s) {
  return -s + a;
}
template <int N>
Jet<N> operator-(double s, const Jet<N>& a) {
  return s + -a;
}
template <int N>
Jet<N> operator/(const Jet<N>& a, double s) {
  return (1 / s) * a;
}
template <int N>
Jet<N> sin(const Jet<N>& a) {
  const double sine = std::sin(a.v);
  return chain(sine, std::cos(a.v), -sine, a);
}

template <int N>
Jet<N> cos(const Jet<N>& a) {
  const double cosine = std::cos(a.v);
  return chain(cosine, -std::sin(a.v), -cosine, a);
}
// The derivatives of the square root at zero are set to zero, as for dual numbers.
template <int N>
Jet<N> sqrt(const Jet<N>& a) {
  const double r = std::sqrt(a.v), slope = r > 0 ? 0.5 / r : 0;
  return chain(r, slope, r > 0 ? -0.5 * slope / a.v : 0, a);
}
template <int N>
Jet<N> asin(const Jet<N>& a) {
  const double slope = 1 / std::sqrt(1 - a.v * a.v);
  return chain(std::asin(a.v), slope, a.v * slope * slope * slope, a);
}
template <int N>
Jet<N> atan2(const Jet<N>& y, const Jet<N>& x) {
  // the derivative of the angle is (x dy - y dx) / (x^2 + y^2)
  const Jet<N> square = x * x + y * y;
  const double inverse = 1 / square.v;
  Jet<N> r;
  r.v = std::atan2(y.v, x.v);
  for (int i = 0; i < N; i++) r.d[i] = inverse * (x.v * y.d[i] - y.v * x.d[i]);
  for (int i = 0, p = 0; i < N; i++)
    for (int k = 0; k <= i; k++, p++) {
      const double change = x.d[k] * y.d[i] - y.d[k] * x.d[i] + x.v * y.h[p] - y.v * x.h[p];
      r.h[p] = inverse * (change - square.d[k] * r.d[i]);
    }
  return r;
}

// The value without its derivatives, for templates over double and Jet.
template <int N>
double value(const Jet<N>& a) {
  return a.v;
}

}  // namespace mujacobian

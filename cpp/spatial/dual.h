// Dual numbers: a value with its derivatives with respect to N variables. Formulas of dual numbers
// are differentiated exactly, in forward mode. Comparisons use the value only, so the result has
// the derivative of the branch that the values select.
#pragma once

#include <cmath>

namespace mujacobian {

template <int N>
struct Dual {
  double v, d[N];
  Dual() = default;
  Dual(double value) : v(value), d{} {}  // a constant
};

// Returns variable number k with this value.
template <int N>
Dual<N> variable(double value, int k) {
  Dual<N> x(value);
  x.d[k] = 1;
  return x;
}

// f(x) and f(x, y), from the value of f and its partial derivatives
template <int N>
Dual<N> chain(double value, double dx, const Dual<N>& x) {
  Dual<N> r;
  r.v = value;
  for (int k = 0; k < N; k++) r.d[k] = dx * x.d[k];
  return r;
}
template <int N>
Dual<N> chain(double value, double dx, const Dual<N>& x, double dy, const Dual<N>& y) {
  Dual<N> r;
  r.v = value;
  for (int k = 0; k < N; k++) r.d[k] = dx * x.d[k] + dy * y.d[k];
  return r;
}

template <int N>
Dual<N> operator+(const Dual<N>& a, const Dual<N>& b) {
  return chain(a.v + b.v, 1, a, 1, b);
}
template <int N>
Dual<N> operator-(const Dual<N>& a, const Dual<N>& b) {
  return chain(a.v - b.v, 1, a, -1, b);
}
template <int N>
Dual<N> operator*(const Dual<N>& a, const Dual<N>& b) {
  return chain(a.v * b.v, b.v, a, a.v, b);
}
template <int N>
Dual<N> operator/(const Dual<N>& a, const Dual<N>& b) {
  double inverse = 1 / b.v, value = a.v * inverse;
  return chain(value, inverse, a, -value * inverse, b);
}
template <int N>
Dual<N> operator+(double a, const Dual<N>& b) {
  return chain(a + b.v, 1, b);
}
template <int N>
Dual<N> operator+(const Dual<N>& a, double b) {
  return chain(a.v + b, 1, a);
}
template <int N>
Dual<N> operator-(double a, const Dual<N>& b) {
  return chain(a - b.v, -1, b);
}
template <int N>
Dual<N> operator-(const Dual<N>& a, double b) {
  return chain(a.v - b, 1, a);
}
template <int N>
Dual<N> operator-(const Dual<N>& a) {
  return chain(-a.v, -1, a);
}
template <int N>
Dual<N> operator*(double a, const Dual<N>& b) {
  return chain(a * b.v, a, b);
}
template <int N>
Dual<N> operator/(double a, const Dual<N>& b) {
  double value = a / b.v;
  return chain(value, -value / b.v, b);
}
template <int N>
Dual<N> operator/(const Dual<N>& a, double b) {
  return chain(a.v / b, 1 / b, a);
}

// The derivative of the square root at zero is set to zero, because MuJoCo's formulas multiply it
// by zero.
template <int N>
Dual<N> sqrt(const Dual<N>& a) {
  double r = std::sqrt(a.v);
  return chain(r, r > 0 ? 0.5 / r : 0, a);
}
template <int N>
Dual<N> sin(const Dual<N>& a) {
  return chain(std::sin(a.v), std::cos(a.v), a);
}
template <int N>
Dual<N> cos(const Dual<N>& a) {
  return chain(std::cos(a.v), -std::sin(a.v), a);
}
template <int N>
Dual<N> asin(const Dual<N>& a) {
  return chain(std::asin(a.v), 1 / std::sqrt(1 - a.v * a.v), a);
}
template <int N>
Dual<N> atan2(const Dual<N>& y, const Dual<N>& x) {
  double r = 1 / (x.v * x.v + y.v * y.v);
  return chain(std::atan2(y.v, x.v), r * x.v, y, -r * y.v, x);
}

// f(x) for templates over Dual and Jet, from the first two derivatives of f
template <int N>
Dual<N> chain(double value, double dx, double, const Dual<N>& x) {
  return chain(value, dx, x);
}

// The value without its derivatives, for templates over double and Dual.
inline double value(double a) { return a; }
template <int N>
double value(const Dual<N>& a) {
  return a.v;
}

}  // namespace mujacobian

#include "control/norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace mujacobian {
namespace {

// Value and derivatives of a function of one row x.
struct Scalar {
  double value, slope, curvature;
};

// Value of a function of c = r^T r, with the gradient slope r and Hessian slope I + bend r r^T.
struct Radial {
  double value, slope, bend;
};

Scalar null(double, double, double x) { return {x, 1, 0}; }

Scalar quadratic(double, double, double x) { return {0.5 * x * x, x, 1}; }

Scalar cosh(double p, double, double x) {
  const double half = std::sinh(x / (2 * p));
  return {2 * p * p * half * half, p * std::sinh(x / p), std::cosh(x / p)};
}

Scalar power(double p, double, double x) {
  const double a = std::abs(x);
  return {std::pow(a, p), std::copysign(p * std::pow(a, p - 1), x),
          p * (p - 1) * std::pow(a, p - 2)};
}

Scalar smooth_abs(double p, double, double x) {
  const double s = std::sqrt(x * x + p * p);
  return {x * x / (s + p), x / s, p * p / (s * s * s)};
}

Scalar smooth_abs2(double p, double q, double x) {
  const double a = std::abs(x), c = std::pow(p, q), e = std::pow(a, q) + c;
  const double s = std::pow(e, 1 / q), b = s / e * std::pow(a, q - 2);
  return {s - p, b * x, (q - 1) * b * c / e};
}

Scalar rectify(double p, double, double x) {
  // e = exp(-|x|/p) does not overflow
  const double e = std::exp(-std::abs(x) / p), up = x > 0 ? 1 / (1 + e) : e / (1 + e);
  return {std::max(x, 0.0) + p * std::log1p(e), up, e / (p * (1 + e) * (1 + e))};
}

// Half the square of the positive part, with the curvature p at 0.                       (ILQ-28)
Scalar excess(double p, double, double x) {
  if (x == 0) return {0, 0, p};
  if (x < 0) return {0, 0, 0};
  return {0.5 * x * x, x, 1};  // also NaN, which makes the cost infinite
}

Radial l2(double p, double, double c) {
  const double s = std::sqrt(c + p * p);
  return {c / (s + p), 1 / s, -1 / (s * s * s)};
}

Radial l22(double p, double q, double c) {
  const double e = std::pow(c, q / 2) + std::pow(p, q), s = std::pow(e, 1 / q);
  const double slope = s / e * std::pow(c, q / 2 - 1);
  // `bend` multiplies r r^T, which vanishes here, so its value does not matter
  if (c < std::numeric_limits<double>::min()) return {s - p, slope, 0};
  return {s - p, slope, slope * ((1 - q) * std::pow(c, q / 2 - 1) / e + (q - 2) / c)};
}

double dot_self(const double* r, int n) {
  double c = 0;
  for (int i = 0; i < n; i++) c += r[i] * r[i];
  return c;
}

}  // namespace

// A norm is a sum of functions of rows, or a function of the squared length of all rows.
struct NormKind {
  const char* name;
  Scalar (*scalar)(double p, double q, double x);
  Radial (*radial)(double p, double q, double c);
};

const NormKind* norm_kind(const std::string& name) {
  static constexpr NormKind kKinds[] = {
      {"null", null, nullptr},
      {"quadratic", quadratic, nullptr},
      {"l2", nullptr, l2},
      {"l22", nullptr, l22},
      {"cosh", cosh, nullptr},
      {"power", power, nullptr},
      {"smooth_abs", smooth_abs, nullptr},
      {"smooth_abs2", smooth_abs2, nullptr},
      {"rectify", rectify, nullptr},
      {"excess", excess, nullptr},
  };
  for (const NormKind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  throw std::invalid_argument("unknown norm " + name);
}

double Norm::value(const double* r, int n) const {
  if (kind->radial) return kind->radial(p, q, dot_self(r, n)).value;
  double sum = 0;
  for (int i = 0; i < n; i++) sum += kind->scalar(p, q, r[i]).value;
  return sum;
}

double Norm::expand(const double* r, int n, double* gradient, double* curvature,
                    double& bend) const {
  if (kind->radial) {
    const Radial radial = kind->radial(p, q, dot_self(r, n));
    for (int i = 0; i < n; i++) gradient[i] = radial.slope * r[i], curvature[i] = radial.slope;
    bend = radial.bend;
    return radial.value;
  }
  double sum = 0;
  for (int i = 0; i < n; i++) {
    const Scalar row = kind->scalar(p, q, r[i]);
    sum += row.value, gradient[i] = row.slope, curvature[i] = row.curvature;
  }
  bend = 0;
  return sum;
}

}  // namespace mujacobian

#include "control/norm.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace mujacobian {
namespace {

struct Scalar {
  double value, slope, curvature;
};

double sign(double x) { return x < 0 ? -1 : x > 0 ? 1 : 0; }

// One row of the norms that are sums over rows.
Scalar scalar_norm(NormKind kind, double p, double q, double x) {
  switch (kind) {
    case NormKind::kNull:
      return {x, 1, 0};
    case NormKind::kCosh: {
      const double c = std::cosh(x / p), s = std::sinh(x / p), half = std::sinh(x / (2 * p));
      return {2 * p * p * half * half, p * s, c};
    }
    case NormKind::kPower: {
      const double a = std::abs(x);
      return {std::pow(a, p), sign(x) * p * std::pow(a, p - 1), p * (p - 1) * std::pow(a, p - 2)};
    }
    case NormKind::kSmoothAbs: {
      const double s = std::sqrt(x * x + p * p);
      return {x * x / (s + p), x / s, p * p / (s * s * s)};
    }
    case NormKind::kSmoothAbs2: {
      const double a = std::abs(x), c = std::pow(p, q), e = std::pow(a, q) + c;
      const double s = std::pow(e, 1 / q), b = s / e * std::pow(a, q - 2);
      return {s - p, b * x, (q - 1) * b * c / e};
    }
    case NormKind::kRectify: {
      // with e = exp(-|x|/p) nothing overflows
      const double e = std::exp(-std::abs(x) / p), up = x > 0 ? 1 / (1 + e) : e / (1 + e);
      return {std::max(x, 0.0) + p * std::log1p(e), up, e / (p * (1 + e) * (1 + e))};
    }
    default:
      return {0.5 * x * x, x, 1};
  }
}

// A function of c = r^T r: its value, and the gradient `slope` r, Hessian slope I + bend r r^T.
struct Radial {
  double value, slope, bend;
};

bool is_radial(NormKind kind) { return kind == NormKind::kL2 || kind == NormKind::kL22; }

Radial radial_norm(NormKind kind, double p, double q, double c) {
  if (kind == NormKind::kL2) {
    const double s = std::sqrt(c + p * p);
    return {c / (s + p), 1 / s, -1 / (s * s * s)};
  }
  const double power = std::pow(p, q), e = std::pow(c, q / 2) + power, s = std::pow(e, 1 / q);
  const double slope = s / e * std::pow(c, q / 2 - 1);
  // at r = 0 the bend multiplies r r^T = 0
  const double bend = c > 0 ? slope * ((1 - q) * std::pow(c, q / 2 - 1) / e + (q - 2) / c) : 0;
  return {s - p, slope, bend};
}

double dot_self(const double* r, int n) {
  double c = 0;
  for (int i = 0; i < n; i++) c += r[i] * r[i];
  return c;
}

}  // namespace

NormKind norm_kind(const std::string& name) {
  constexpr const char* kNames[] = {"null",  "quadratic",  "l2",          "l22",    "cosh",
                                    "power", "smooth_abs", "smooth_abs2", "rectify"};
  for (int k = 0; k < 9; k++) {
    if (name == kNames[k]) return static_cast<NormKind>(k);
  }
  throw std::invalid_argument("unknown norm " + name);
}

double Norm::value(const double* r, int n) const {
  if (is_radial(kind)) return radial_norm(kind, p, q, dot_self(r, n)).value;
  double sum = 0;
  for (int i = 0; i < n; i++) sum += scalar_norm(kind, p, q, r[i]).value;
  return sum;
}

double Norm::expand(const double* r, int n, double* gradient, double* curvature,
                    double& bend) const {
  if (is_radial(kind)) {
    const Radial radial = radial_norm(kind, p, q, dot_self(r, n));
    for (int i = 0; i < n; i++) gradient[i] = radial.slope * r[i], curvature[i] = radial.slope;
    bend = radial.bend;
    return radial.value;
  }
  double sum = 0;
  for (int i = 0; i < n; i++) {
    const Scalar row = scalar_norm(kind, p, q, r[i]);
    sum += row.value, gradient[i] = row.slope, curvature[i] = row.curvature;
  }
  bend = 0;
  return sum;
}

}  // namespace mujacobian

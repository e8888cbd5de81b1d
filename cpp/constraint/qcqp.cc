#include "constraint/qcqp.h"

#include <cmath>

#include "layout/enums.h"

namespace mujacobian {
namespace {

// MuJoCo's tolerances, in the units of the numbers that are compared with them
constexpr double kSingular = 1e-10, kInside = 1e-10, kShortStep = 1e-10;
constexpr int kMaxSteps = 20;

double dot(const double* a, const double* b, int n) {
  double sum = 0;
  for (int k = 0; k < n; k++) sum += a[k] * b[k];
  return sum;
}

// y = scale A x
void multiply(const double* A, const double* x, double scale, double* y, int n) {
  for (int r = 0; r < n; r++) y[r] = scale * dot(A + r * n, x, n);
}

// Computes the inverse of a symmetric matrix by its Cholesky factor. Returns false if MuJoCo treats
// the matrix as singular: by its determinant in two and three dimensions, by its pivots in more.
bool invert(const double* A, double* inverse, int n) {
  // factor
  double l[kMaxFriction * kMaxFriction] = {};
  double determinant = 1, smallest = INFINITY;
  for (int r = 0; r < n; r++) {
    for (int c = 0; c < r; c++) {
      l[r * n + c] = (A[r * n + c] - dot(l + r * n, l + c * n, c)) / l[c * n + c];
    }
    double pivot = A[r * n + r] - dot(l + r * n, l + r * n, r);
    if (!(pivot > 0)) return false;
    determinant *= pivot;
    smallest = std::fmin(smallest, pivot);
    l[r * n + r] = std::sqrt(pivot);
  }
  if ((n <= 3 ? determinant : smallest) < kSingular) return false;
  // columns of the inverse
  for (int k = 0; k < n; k++) {
    double x[kMaxFriction] = {};
    x[k] = 1;
    for (int r = k; r < n; r++) x[r] = (x[r] - dot(l + r * n, x, r)) / l[r * n + r];
    for (int r = n - 1; r >= 0; r--) {
      for (int c = r + 1; c < n; c++) x[r] -= l[c * n + r] * x[c];
      x[r] /= l[r * n + r];
      inverse[r * n + k] = x[r];
    }
  }
  return true;
}

}  // namespace

Qcqp solve_qcqp(int n, const double* A, const double* b, const double* mu, double r, Arena& arena) {
  Qcqp p{};
  p.n = n, p.mu = mu, p.r = r;
  p.step = arena.take<Qcqp::Step>(kMaxSteps);

  // scaled problem
  double scaled[kMaxFriction * kMaxFriction], rhs[kMaxFriction], multiplier = 0;
  for (int i = 0; i < n; i++) {
    rhs[i] = mu[i] * b[i];
    for (int k = 0; k < n; k++) scaled[i * n + k] = mu[i] * mu[k] * A[i * n + k];
  }
  // Newton steps on the multiplier
  while (p.count < kMaxSteps) {
    Qcqp::Step& s = p.step[p.count++];
    if (!invert(scaled, s.inverse, n)) {
      p.singular = true;
      return p;
    }
    multiply(s.inverse, rhs, -1, s.v, n);
    const double excess = dot(s.v, s.v, n) - r * r;
    if (excess < kInside) break;
    multiply(s.inverse, s.v, 1, s.w, n);
    s.slope = 2 * dot(s.v, s.w, n);
    s.length = excess / s.slope;
    if (s.length < kShortStep) break;
    multiplier += s.length;
    for (int i = 0; i < n; i++) scaled[i * n + i] += s.length;
  }
  // the last v, scaled onto the ellipse if the constraint is active
  const double* v = p.step[p.count - 1].v;
  p.on_edge = multiplier != 0;
  // tie: noslip and the cone
  p.scale = p.on_edge ? r / std::sqrt(std::fmax(kMinVal, dot(v, v, n))) : 1;
  for (int i = 0; i < n; i++) p.x[i] = p.scale * mu[i] * v[i];
  return p;
}

void differentiate_qcqp(const Qcqp& p, const double* dA, const double* db, double dr, double* dx) {
  const int n = p.n;
  for (int i = 0; i < n; i++) dx[i] = 0;
  if (p.singular) return;
  double scaled[kMaxFriction * kMaxFriction], rhs[kMaxFriction], t[kMaxFriction];
  double dv[kMaxFriction], dw[kMaxFriction], dmultiplier = 0;
  for (int i = 0; i < n; i++) {
    rhs[i] = p.mu[i] * db[i];
    for (int k = 0; k < n; k++) scaled[i * n + k] = p.mu[i] * p.mu[k] * dA[i * n + k];
  }
  // derivative of every step
  for (int k = 0; k < p.count; k++) {
    const Qcqp::Step& s = p.step[k];
    for (int i = 0; i < n; i++) t[i] = rhs[i] + dot(scaled + i * n, s.v, n) + dmultiplier * s.v[i];
    multiply(s.inverse, t, -1, dv, n);  // (SLIP-8)
    if (k == p.count - 1) break;
    for (int i = 0; i < n; i++) t[i] = dv[i] - dot(scaled + i * n, s.w, n) - dmultiplier * s.w[i];
    multiply(s.inverse, t, 1, dw, n);
    const double excess = 2 * (dot(s.v, dv, n) - p.r * dr);
    const double slope = 2 * (dot(dv, s.w, n) + dot(s.v, dw, n));
    dmultiplier += (excess - s.length * slope) / s.slope;  // (SLIP-9)
  }
  // the result
  const double* v = p.step[p.count - 1].v;
  double dscale = 0;
  if (p.on_edge) {
    const double norm2 = dot(v, v, n);
    dscale = p.scale * (dr / p.r - (norm2 > kMinVal ? dot(v, dv, n) / norm2 : 0));
  }
  for (int i = 0; i < n; i++) dx[i] = p.mu[i] * (p.scale * dv[i] + dscale * v[i]);
}

}  // namespace mujacobian

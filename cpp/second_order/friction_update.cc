#include "second_order/friction_update.h"

#include <algorithm>

#include "spatial/jet.h"

namespace mujacobian {
namespace {

// The factors L and D of a symmetric matrix (n, n).
template <class T>
struct Factors {
  T lower[kMaxFriction * kMaxFriction], pivot[kMaxFriction];
};

template <class T>
Factors<T> factor(const T* A, int n) {
  Factors<T> f;
  for (int r = 0; r < n; r++) {
    for (int c = 0; c <= r; c++) {
      T sum = A[r * n + c];
      for (int k = 0; k < c; k++) {
        sum = sum - f.lower[r * n + k] * f.lower[c * n + k] * f.pivot[k];
      }
      if (c < r) {
        f.lower[r * n + c] = sum / f.pivot[c];
      } else {
        f.pivot[r] = sum;
      }
    }
  }
  return f;
}

// x <- A^-1 x
template <class T>
void solve(const Factors<T>& f, T* x, int n) {
  for (int r = 0; r < n; r++)
    for (int k = 0; k < r; k++) x[r] = x[r] - f.lower[r * n + k] * x[k];
  for (int r = n - 1; r >= 0; r--) {
    x[r] = x[r] / f.pivot[r];
    for (int k = r + 1; k < n; k++) x[r] = x[r] - f.lower[k * n + r] * x[k];
  }
}

template <class T>
T dot(const T* a, const T* b, int n) {
  T sum(0.0);
  for (int k = 0; k < n; k++) sum = sum + a[k] * b[k];
  return sum;
}

// Computes the forces of a cone by the steps that the noslip solver took.         (SLIP-8, SLIP-9)
template <class T>
void repeat_steps(const Qcqp& p, const T* A, const T* b, const T& r, T* x) {
  const int n = p.n;
  T scaled[kMaxFriction * kMaxFriction], v[kMaxFriction], w[kMaxFriction];
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) scaled[i * n + k] = p.mu[i] * p.mu[k] * A[i * n + k];
  for (int step = 0; step < p.count; step++) {
    const Factors<T> f = factor(scaled, n);
    for (int i = 0; i < n; i++) v[i] = -p.mu[i] * b[i];
    solve(f, v, n);
    if (step == p.count - 1) break;
    std::copy(v, v + n, w);
    solve(f, w, n);
    const T length = (dot(v, v, n) - r * r) / (2.0 * dot(v, w, n));
    for (int i = 0; i < n; i++) scaled[i * n + i] = scaled[i * n + i] + length;
  }
  const T scale = p.on_edge ? r / sqrt(dot(v, v, n)) : T(1.0);
  for (int i = 0; i < n; i++) x[i] = p.mu[i] * (scale * v[i]);
}

// Differentiates an update of the n forces of a cone.
template <int n>
void differentiate_cone(const FrictionBlock& friction, const Qcqp& p, const double* residual,
                        const double* force, const double* weights, const UpdateDerivative& out) {
  constexpr UpdateVariables at{n};
  constexpr int kSize = 2 * n + 1 + n * (n + 1) / 2;
  using T = Jet<kSize>;
  // variables, b = r - A f, and delta = x - f
  T A[n * n], f[n], b[n], x[n];
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) {
      A[i * n + k] = jet_variable<kSize>(friction.A[i * n + k], at.mobility(i, k));
    }
  for (int i = 0; i < n; i++) f[i] = jet_variable<kSize>(force[i], at.force(i));
  for (int i = 0; i < n; i++) {
    b[i] = jet_variable<kSize>(residual[i], at.residual(i)) - dot(A + i * n, f, n);
  }
  repeat_steps(p, A, b, jet_variable<kSize>(friction.limit, at.limit()), x);
  for (int i = 0; i < n; i++) {
    const T delta = x[i] - f[i];
    for (int j = 0; j < kSize; j++) {
      out.slope[i * kSize + j] = delta.d[j];
      for (int k = 0; k < kSize; k++) {
        out.second[j * kSize + k] += weights[i] * delta.second(j, k);
      }
    }
  }
}

}  // namespace

UpdateDerivative differentiate_update(const FrictionBlock& friction, const FrictionUpdate& update,
                                      const double* residual, const double* force,
                                      const double* weights, Arena& arena) {
  const int n = friction.count;
  const UpdateVariables at{n};
  const int size = at.size();
  UpdateDerivative out{arena.zeros<double>(n * size), arena.zeros<double>(size * size)};
  switch (update.outcome) {
    case FrictionUpdate::kInside: {
      // -r / A
      const double A = friction.A[0], r = residual[0];
      const int of_r = at.residual(0), of_A = at.mobility(0, 0);
      out.slope[of_r] = -1 / A;
      out.slope[of_A] = r / (A * A);
      out.second[of_r * size + of_A] = out.second[of_A * size + of_r] = weights[0] / (A * A);
      out.second[of_A * size + of_A] = -2 * weights[0] * r / (A * A * A);
      break;
    }
    case FrictionUpdate::kLow:
    case FrictionUpdate::kHigh:
      out.slope[at.limit()] = update.outcome == FrictionUpdate::kLow ? -1 : 1;
      out.slope[at.force(0)] = -1;
      break;
    case FrictionUpdate::kZero:
      out.slope[at.force(0)] = -1;
      break;
    case FrictionUpdate::kCone:
      if (update.qcqp->singular) {
        for (int i = 0; i < n; i++) out.slope[i * size + at.force(i)] = -1;
      } else if (n == 2) {
        differentiate_cone<2>(friction, *update.qcqp, residual, force, weights, out);
      } else if (n == 3) {
        differentiate_cone<3>(friction, *update.qcqp, residual, force, weights, out);
      } else {
        differentiate_cone<5>(friction, *update.qcqp, residual, force, weights, out);
      }
      break;
  }
  return out;
}

}  // namespace mujacobian

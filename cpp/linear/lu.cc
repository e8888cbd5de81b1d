#include "linear/lu.h"

#include <cmath>
#include <cstring>
#include <utility>

namespace mujacobian {
namespace {

// The diagonal entry is the pivot unless it is smaller than this share of the best candidate.
constexpr double kSmall = 0.1;

// to -= factor * from
void subtract_row(double* to, double factor, const double* from, int first, int last) {
  for (int c = first; c < last; c++) to[c] -= factor * from[c];
}

}  // namespace

bool factor_lu(int n, double* a, int* order, Arena& arena) {
  // largest entry of each row
  double* size = arena.zeros<double>(n);
  for (int r = 0; r < n; r++) {
    order[r] = r;
    for (int c = 0; c < n; c++) size[r] = std::fmax(size[r], std::abs(a[n * r + c]));
    if (!(size[r] > 0)) return false;
  }
  for (int p = n - 1; p >= 0; p--) {
    // exchange rows if another pivot is much larger
    auto candidate = [&](int r) { return std::abs(a[n * r + p]) / size[r]; };
    int best = p;
    for (int r = 0; r < p; r++)
      if (candidate(r) > candidate(best)) best = r;
    if (!(candidate(best) > 0)) return false;
    if (candidate(p) < kSmall * candidate(best)) {
      for (int c = 0; c < n; c++) std::swap(a[n * p + c], a[n * best + c]);
      std::swap(size[p], size[best]);
      std::swap(order[p], order[best]);
    }
    // eliminate column p from the rows above it
    for (int r = 0; r < p; r++) {
      if (a[n * r + p] == 0) continue;
      a[n * r + p] /= a[n * p + p];
      subtract_row(a + n * r, a[n * r + p], a + n * p, 0, p);
    }
  }
  return true;
}

void solve_lu(int n, const double* factor, const int* order, double* x, int stride, int first,
              int last, Arena& arena) {
  // bring the rows into the order of the factor
  const std::size_t size = static_cast<std::size_t>(n) * stride;
  double* given = arena.take<double>(size);
  std::memcpy(given, x, (size - stride + last) * sizeof(double));
  auto row = [&](int r) { return x + static_cast<std::ptrdiff_t>(r) * stride; };
  for (int r = 0; r < n; r++) {
    const double* from = given + static_cast<std::ptrdiff_t>(order[r]) * stride;
    std::memcpy(row(r) + first, from + first, (last - first) * sizeof(double));
  }
  // U y = b, leaves first
  for (int p = n - 1; p > 0; p--)
    for (int r = 0; r < p; r++) {
      if (double f = factor[n * r + p]; f != 0) subtract_row(row(r), f, row(p), first, last);
    }
  // L x = y, root first
  for (int r = 0; r < n; r++) {
    for (int p = 0; p < r; p++) {
      if (double f = factor[n * r + p]; f != 0) subtract_row(row(r), f, row(p), first, last);
    }
    const double scale = 1 / factor[(n + 1) * r];
    for (int c = first; c < last; c++) row(r)[c] *= scale;
  }
}

void solve_lu_transposed(int n, const double* factor, const int* order, double* x, int stride,
                         Arena& arena) {
  double* y = arena.take<double>(n);
  // L^T y = x
  for (int r = n - 1; r >= 0; r--) {
    y[r] = x[r * stride];
    for (int p = r + 1; p < n; p++) y[r] -= factor[n * p + r] * y[p];
    y[r] /= factor[(n + 1) * r];
  }
  // U^T x = y, then back to the order of the rows
  for (int p = 1; p < n; p++) {
    for (int r = 0; r < p; r++) y[p] -= factor[n * r + p] * y[r];
  }
  for (int r = 0; r < n; r++) x[order[r] * stride] = y[r];
}

}  // namespace mujacobian

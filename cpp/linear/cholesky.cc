#include "linear/cholesky.h"

#include <cmath>

#include "linear/lanes.h"

namespace mujacobian {
namespace {

double dot_rows(const double* a, const double* b, int n) {
  Lanes sum{};
  int k = 0;
  for (; k + kLanes <= n; k += kLanes) sum += load_lanes(a + k) * load_lanes(b + k);
  double total = sum[0] + sum[1] + sum[2] + sum[3];
  for (; k < n; k++) total += a[k] * b[k];
  return total;
}

// Solves for `tile` groups of four columns.
template <int tile>
void solve_tile(const double* l, int n, int stride, double* x, int row_stride) {
  // L y = x, first row first
  for (int i = 0; i < n; i++) {
    double* row = x + static_cast<std::ptrdiff_t>(i) * row_stride;
    Lanes sum[tile];
    for (int c = 0; c < tile; c++) sum[c] = load_lanes(row + kLanes * c);
    for (int j = 0; j < i; j++) {
      Lanes lij = broadcast(l[i * stride + j]);
      const double* other = x + static_cast<std::ptrdiff_t>(j) * row_stride;
      for (int c = 0; c < tile; c++) sum[c] -= lij * load_lanes(other + kLanes * c);
    }
    Lanes inverse = broadcast(l[i * stride + i]);
    for (int c = 0; c < tile; c++) store_lanes(row + kLanes * c, inverse * sum[c]);
  }
  // L^T x = y, last row first
  for (int i = n - 1; i >= 0; i--) {
    double* row = x + static_cast<std::ptrdiff_t>(i) * row_stride;
    Lanes sum[tile];
    for (int c = 0; c < tile; c++) sum[c] = load_lanes(row + kLanes * c);
    for (int j = n - 1; j > i; j--) {
      Lanes lji = broadcast(l[j * stride + i]);
      const double* other = x + static_cast<std::ptrdiff_t>(j) * row_stride;
      for (int c = 0; c < tile; c++) sum[c] -= lji * load_lanes(other + kLanes * c);
    }
    Lanes inverse = broadcast(l[i * stride + i]);
    for (int c = 0; c < tile; c++) store_lanes(row + kLanes * c, inverse * sum[c]);
  }
}

}  // namespace

bool factor_dense(double* a, int n, int stride) {
  for (int i = 0; i < n; i++) {
    double* row = a + i * stride;
    for (int j = 0; j < i; j++) {
      row[j] = (row[j] - dot_rows(row, a + j * stride, j)) * a[j * stride + j];
    }
    double d = row[i] - dot_rows(row, row, i);
    if (!(d > 0)) return false;
    row[i] = 1 / std::sqrt(d);
  }
  return true;
}

void solve_dense(const double* l, int n, int stride, double* rows, int row_stride, int first,
                 int last) {
  visit_tiles(first, last,
              [&]<int tile>(int c) { solve_tile<tile>(l, n, stride, rows + c, row_stride); });
}

}  // namespace mujacobian

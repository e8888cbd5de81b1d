#include "tree/inertia.h"

#include "linear/lanes.h"

namespace mujacobian {
namespace {

// Solves for 4 n columns of the rows of a tree. Both triangular solves run while the columns are in
// the cache. Rows that were just written are read last, so that their stores have time to finish.
template <int n>
void solve_tile(const ModelView& m, const Topology& tree, const InertiaFactor& factor, int adr,
                int num, double* x, int stride) {
  // L^T y = b, leaves first: y_i = b_i - sum over descendants k of L_ki y_k
  for (int i = num - 1; i >= 0; i--) {
    double* row = x + static_cast<std::ptrdiff_t>(i) * stride;
    Lanes sum[n];
    for (int c = 0; c < n; c++) sum[c] = load_lanes(row + kLanes * c);
    const int depth = tree.depth[adr + i], end = tree.end[adr + i];
    const double* other = row + static_cast<std::ptrdiff_t>(end - adr - i) * stride;
    for (int k = end - 1; k > adr + i; k--) {
      other -= stride;
      if (m.M_rownnz[k] == 1) continue;
      Lanes l = broadcast(factor.packed[m.M_rowadr[k] + depth]);
      for (int c = 0; c < n; c++) sum[c] -= l * load_lanes(other + kLanes * c);
    }
    for (int c = 0; c < n; c++) store_lanes(row + kLanes * c, sum[c]);
  }
  // L x = D^-1 y, root first: x_i = y_i / D_i - sum over ancestors j of L_ij x_j
  for (int i = 0; i < num; i++) {
    double* row = x + static_cast<std::ptrdiff_t>(i) * stride;
    Lanes sum[n], inverse = broadcast(factor.diagonal_inverse[adr + i]);
    for (int c = 0; c < n; c++) sum[c] = inverse * load_lanes(row + kLanes * c);
    const int first = m.M_rowadr[adr + i], last = first + m.M_rownnz[adr + i] - 1;
    for (int p = first; p < last; p++) {
      Lanes l = broadcast(factor.packed[p]);
      const double* other = x + static_cast<std::ptrdiff_t>(m.M_colind[p] - adr) * stride;
      for (int c = 0; c < n; c++) sum[c] -= l * load_lanes(other + kLanes * c);
    }
    for (int c = 0; c < n; c++) store_lanes(row + kLanes * c, sum[c]);
  }
}

// y += M x for 4 n columns of the rows of a tree.
template <int n>
void multiply_tile(const ModelView& m, const Topology& tree, const double* inertia, int adr,
                   int num, const double* x, double* y, int stride) {
  for (int i = 0; i < num; i++) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * stride;
    Lanes sum[n];
    for (int c = 0; c < n; c++) sum[c] = load_lanes(y + at + kLanes * c);
    auto add = [&](double value, int dof) {
      Lanes factor = broadcast(value);
      const double* row = x + static_cast<std::ptrdiff_t>(dof - adr) * stride;
      for (int c = 0; c < n; c++) sum[c] += factor * load_lanes(row + kLanes * c);
    };
    // ancestors and the dof itself, then descendants
    const int first = m.M_rowadr[adr + i], last = first + m.M_rownnz[adr + i];
    for (int p = first; p < last; p++) add(inertia[p], m.M_colind[p]);
    const int depth = tree.depth[adr + i];
    for (int k = adr + i + 1, end = tree.end[adr + i]; k < end; k++) {
      if (m.M_rownnz[k] > 1) add(inertia[m.M_rowadr[k] + depth], k);
    }
    for (int c = 0; c < n; c++) store_lanes(y + at + kLanes * c, sum[c]);
  }
}

// y -= s x for n entries
inline void subtract_scaled(double* y, const double* x, double s, int n) {
  int c = 0;
  for (Lanes factor = broadcast(s); c + kLanes <= n; c += kLanes) {
    store_lanes(y + c, load_lanes(y + c) - factor * load_lanes(x + c));
  }
  for (; c < n; c++) y[c] -= s * x[c];
}

}  // namespace

bool factor_inertia(const ModelView& m, double* packed, double* diagonal_inverse) {
  for (int k = m.nv - 1; k >= 0; k--) {
    double* row = packed + m.M_rowadr[k];
    int below = m.M_rownnz[k] - 1;
    double d = row[below];
    if (!(d > 0)) return false;
    diagonal_inverse[k] = 1 / d;
    // eliminate dof k from the rows of its ancestors, deepest first
    int i = m.dof_parentid[k];
    for (int p = below - 1; p >= 0; p--, i = m.dof_parentid[i]) {
      double* other = packed + m.M_rowadr[i];
      double l = row[p] * diagonal_inverse[k];
      subtract_scaled(other, row, l, p + 1);
      row[p] = l;
    }
  }
  return true;
}

namespace {

// Two numbers in one register.
typedef double Twins __attribute__((vector_size(16)));

// Number is double or Twins.
template <class Number>
void solve_numbers(const ModelView& m, const InertiaFactor& factor, Number* x) {
  // L^T y = x
  for (int i = m.nv - 1; i >= 0; i--) {
    const int first = m.M_rowadr[i], last = first + m.M_rownnz[i] - 1;
    for (int p = first; p < last; p++) x[m.M_colind[p]] -= factor.packed[p] * x[i];
  }
  // L x = D^-1 y, with two independent chains of additions
  for (int i = 0; i < m.nv; i++) {
    const int first = m.M_rowadr[i], last = first + m.M_rownnz[i] - 1;
    Number sum[2] = {x[i] * factor.diagonal_inverse[i], Number{}};
    for (int p = first; p < last; p++) sum[p & 1] -= factor.packed[p] * x[m.M_colind[p]];
    x[i] = sum[0] + sum[1];
  }
}

}  // namespace

void solve_inertia(const ModelView& m, const InertiaFactor& factor, double* x) {
  solve_numbers(m, factor, x);
}

void solve_inertia_twice(const ModelView& m, const InertiaFactor& factor, double* x) {
  solve_numbers(m, factor, reinterpret_cast<Twins*>(x));
}

void solve_inertia(const ModelView& m, const Topology& tree, const InertiaFactor& factor, int adr,
                   int num, double* rows, int stride, int first, int last) {
  visit_tiles(first, last,
              [&]<int n>(int c) { solve_tile<n>(m, tree, factor, adr, num, rows + c, stride); });
}

void multiply_inertia(const ModelView& m, const Topology& tree, const double* inertia, int adr,
                      int num, const double* x, double* y, int stride, int first, int last) {
  visit_tiles(first, last, [&]<int n>(int c) {
    multiply_tile<n>(m, tree, inertia, adr, num, x + c, y + c, stride);
  });
}

}  // namespace mujacobian

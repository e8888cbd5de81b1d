#include "smooth/inertia.h"

#include "spatial/lanes.h"

namespace mujacobian {
namespace {

// 4 n columns of a tree's rows at a time: both triangular solves while the columns are in cache.
template <int n>
void solve_tile(const ModelView& m, const Topology& tree, const InertiaFactor& factor, int adr,
                int num, double* x, int stride) {
  // L^T y = b, leaves first: y_i = b_i - sum over descendants k of L_ki y_k
  for (int i = num - 1; i >= 0; i--) {
    double* row = x + static_cast<std::ptrdiff_t>(i) * stride;
    Lanes sum[n];
    for (int c = 0; c < n; c++) sum[c] = load_lanes(row + kLanes * c);
    const double* other = row;
    const int depth = tree.depth[adr + i];
    for (int k = adr + i + 1, end = tree.end[adr + i]; k < end; k++) {
      other += stride;
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
    const double* l = factor.packed + m.M_rowadr[adr + i] + m.M_rownnz[adr + i] - 2;
    int parent = m.M_rownnz[adr + i] == 1 ? -1 : m.dof_parentid[adr + i];
    for (int j = parent; j >= 0; j = m.dof_parentid[j]) {
      Lanes lij = broadcast(*l--);
      const double* other = x + static_cast<std::ptrdiff_t>(j - adr) * stride;
      for (int c = 0; c < n; c++) sum[c] -= lij * load_lanes(other + kLanes * c);
    }
    for (int c = 0; c < n; c++) store_lanes(row + kLanes * c, sum[c]);
  }
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
      for (int c = 0; c <= p; c++) other[c] -= l * row[c];
      row[p] = l;
    }
  }
  return true;
}

void solve_inertia(const ModelView& m, const InertiaFactor& factor, double* x) {
  for (int i = m.nv - 1; i >= 0; i--) {
    const double* row = factor.packed + m.M_rowadr[i];
    int j = m.dof_parentid[i];
    for (int p = m.M_rownnz[i] - 2; p >= 0; p--, j = m.dof_parentid[j]) x[j] -= row[p] * x[i];
  }
  for (int i = 0; i < m.nv; i++) {
    const double* row = factor.packed + m.M_rowadr[i];
    double sum[2] = {x[i] * factor.diagonal_inverse[i], 0};  // two chains of additions
    int j = m.dof_parentid[i];
    for (int p = m.M_rownnz[i] - 2; p >= 0; p--, j = m.dof_parentid[j]) sum[p & 1] -= row[p] * x[j];
    x[i] = sum[0] + sum[1];
  }
}

void solve_inertia(const ModelView& m, const Topology& tree, const InertiaFactor& factor, int adr,
                   int num, double* rows, int stride, int first, int last) {
  // whole lanes only; rows are padded to whole lanes at their end
  first = first / kLanes * kLanes;
  double* x = rows + first;
  int count = round_to_lanes(last - first) / kLanes;
  for (; count >= 8; count -= 8, x += 8 * kLanes) {
    solve_tile<8>(m, tree, factor, adr, num, x, stride);
  }
  switch (count) {
    case 7: return solve_tile<7>(m, tree, factor, adr, num, x, stride);
    case 6: return solve_tile<6>(m, tree, factor, adr, num, x, stride);
    case 5: return solve_tile<5>(m, tree, factor, adr, num, x, stride);
    case 4: return solve_tile<4>(m, tree, factor, adr, num, x, stride);
    case 3: return solve_tile<3>(m, tree, factor, adr, num, x, stride);
    case 2: return solve_tile<2>(m, tree, factor, adr, num, x, stride);
    case 1: return solve_tile<1>(m, tree, factor, adr, num, x, stride);
  }
}

}  // namespace mujacobian

// The sparse factorization L^T D L of a matrix with the pattern of M, in MuJoCo's packed rows: the
// ancestors of a dof by increasing depth, then its diagonal.
#pragma once

#include "layout/topology.h"
#include "tree/dof_rows.h"

namespace mujacobian {

struct InertiaFactor {
  const double* packed;  // L, unit diagonal left out; D on the diagonal
  const double* diagonal_inverse;
};

// M stores the entry (i, j): one is an ancestor of the other, and neither is a dof that MuJoCo
// treats as a constant diagonal.
inline bool in_mass_matrix(const ModelView& m, const Topology& tree, int i, int j) {
  if (i == j) return true;
  int lower = i > j ? i : j;
  return tree.is_related(i, j) && m.M_rownnz[lower] > 1;
}

// Position of (i, j) in the packed rows, for j = i or an ancestor of i.
inline int packed_index(const ModelView& m, const Topology& tree, int i, int j) {
  return i == j ? m.M_rowadr[i] + m.M_rownnz[i] - 1 : m.M_rowadr[i] + tree.depth[j];
}

// Factor `packed` in place; false if it is not positive definite.
bool factor_inertia(const ModelView& m, double* packed, double* diagonal_inverse);

// x <- (L^T D L)^-1 x
void solve_inertia(const ModelView& m, const InertiaFactor& factor, double* x);

// Columns first .. last-1 of the rows of one tree, dofs adr .. adr+num-1, in place.
void solve_inertia(const ModelView& m, const Topology& tree, const InertiaFactor& factor, int adr,
                   int num, double* rows, int stride, int first, int last);

// y += M x for columns first .. last-1 of the rows of one tree
void multiply_inertia(const ModelView& m, const Topology& tree, const double* inertia, int adr,
                      int num, const double* x, double* y, int stride, int first, int last);

}  // namespace mujacobian

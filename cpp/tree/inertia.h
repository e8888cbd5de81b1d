// The sparse factorization L^T D L of a matrix with the sparsity pattern of M, in MuJoCo's packed
// rows: the ancestors of a dof by increasing depth, then its diagonal entry.
#pragma once

#include "layout/topology.h"
#include "tree/dof_rows.h"

namespace mujacobian {

struct InertiaFactor {
  const double* packed;  // L without its unit diagonal, and D on the diagonal
  const double* diagonal_inverse;
};

// Returns whether M stores the entry (i, j): one dof is an ancestor of the other, and MuJoCo does
// not treat the lower one as a dof with a constant diagonal.
inline bool in_mass_matrix(const ModelView& m, const Topology& tree, int i, int j) {
  if (i == j) return true;
  int lower = i > j ? i : j;
  return tree.is_related(i, j) && m.M_rownnz[lower] > 1;
}

// Returns the position of (i, j) in the packed rows, where j is i or an ancestor of i.
inline int packed_index(const ModelView& m, const Topology& tree, int i, int j) {
  return i == j ? m.M_rowadr[i] + m.M_rownnz[i] - 1 : m.M_rowadr[i] + tree.depth[j];
}

// Factors `packed` in place. Returns false if it is not positive definite.
bool factor_inertia(const ModelView& m, double* packed, double* diagonal_inverse);

// x <- (L^T D L)^-1 x for one vector.
void solve_inertia(const ModelView& m, const InertiaFactor& factor, double* x);

// The same for two vectors, whose entries alternate in x.
void solve_inertia_twice(const ModelView& m, const InertiaFactor& factor, double* x);

// The same for columns first .. last-1 of the rows of one tree, which has dofs adr .. adr+num-1.
void solve_inertia(const ModelView& m, const Topology& tree, const InertiaFactor& factor, int adr,
                   int num, double* rows, int stride, int first, int last);

// y += M x for columns first .. last-1 of the rows of one tree.
void multiply_inertia(const ModelView& m, const Topology& tree, const double* inertia, int adr,
                      int num, const double* x, double* y, int stride, int first, int last);

}  // namespace mujacobian

// Dense LU factorization for the unsymmetric system of one kinematic tree. The elimination runs
// from the leaves to the root, which preserves the zeros between branches.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

// Factors a (n, n) in place, and writes the order of its rows to `order`. Rows are exchanged only
// if the diagonal entry is small compared with its column. Each row is scaled by its largest entry
// for this comparison, because masses may differ by orders of magnitude. Returns false if a is
// singular.
bool factor_lu(int n, double* a, int* order, Arena& arena);

// x <- a^-1 x for columns first .. last-1 of n rows.
void solve_lu(int n, const double* factor, const int* order, double* x, int stride, int first,
              int last, Arena& arena);

// x <- a^-T x for one vector whose entries are `stride` apart.
void solve_lu_transposed(int n, const double* factor, const int* order, double* x, int stride,
                         Arena& arena);

}  // namespace mujacobian

// Dense unsymmetric systems of one tree. Elimination runs from the leaves to the root, which keeps
// the zeros between branches.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

// Factor a (n, n) in place; `order` gets the order of its rows. Rows are exchanged only where the
// diagonal is small beside its column, each row measured by its own largest entry: masses may
// differ by orders of magnitude. False if a is singular.
bool factor_lu(int n, double* a, int* order, Arena& arena);

// Columns first .. last-1 of n rows: x <- a^-1 x
void solve_lu(int n, const double* factor, const int* order, double* x, int stride, int first,
              int last, Arena& arena);

// x <- a^-T x for one vector whose entries are `stride` apart
void solve_lu_transposed(int n, const double* factor, const int* order, double* x, int stride,
                         Arena& arena);

}  // namespace mujacobian

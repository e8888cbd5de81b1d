// Dense Cholesky factorization, rows of L one after another.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

// a (n, n) with its lower triangle set; on return L with the inverse of its diagonal on the
// diagonal. `stride` is a multiple of four and the padding is zero. False if not positive definite.
bool factor_dense(double* a, int n, int stride);

// Columns first .. last-1 of the n rows, in place: x <- (L L^T)^-1 x
void solve_dense(const double* l, int n, int stride, double* rows, int row_stride, int first,
                 int last);

}  // namespace mujacobian

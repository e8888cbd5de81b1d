// Dense Cholesky factorization. The rows of L are computed one after another.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

// Replaces a (n, n), whose lower triangle is set, by L with the inverses of its diagonal entries on
// the diagonal. `stride` is a multiple of four, and the padding is zero. Returns false if a is not
// positive definite.
bool factor_dense(double* a, int n, int stride);

// x <- (L L^T)^-1 x, in place, for columns first .. last-1 of the n rows.
void solve_dense(const double* l, int n, int stride, double* rows, int row_stride, int first,
                 int last);

}  // namespace mujacobian

// Minimization of x^T H x / 2 + g^T x with lower <= x <= upper, by an active-set method.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

struct BoxSolution {
  int free_count;
  int* free;       // indices of the free components, which are not fixed at a bound
  double* factor;  // factor of H over the free components, from `factor_dense`
  int stride;      // row stride of the factor
};

// H (n, stride) is symmetric. `x` (n) is an initial guess on entry and the solution on return. The
// arena owns the arrays of `solution`. Returns false if H is not positive definite over the free
// components.
bool solve_box_qp(const double* H, int stride, const double* g, const double* lower,
                  const double* upper, int n, double* x, BoxSolution& solution, Arena& arena);

}  // namespace mujacobian

// min x^T H x / 2 + g^T x between bounds, by an active-set method.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

struct BoxSolution {
  int free_count;
  int* free;       // the components that are not clamped to a bound
  double* factor;  // of H over the free components, as `factor_dense` leaves it
  int stride;      // of the factor
};

// H (n, stride), symmetric. `x` (n) is a guess on entry and the solution on return. Memory is the
// arena's. False if H is not positive definite over free components.
bool solve_box_qp(const double* H, int stride, const double* g, const double* lower,
                  const double* upper, int n, double* x, BoxSolution& solution, Arena& arena);

}  // namespace mujacobian

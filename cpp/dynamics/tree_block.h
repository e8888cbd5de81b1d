// The block of one tree in a matrix of the dynamics that is not symmetric.
#pragma once

namespace mujacobian {

struct TreeBlock {
  int dof, n;      // dofs dof .. dof+n-1
  double* matrix;  // (n, n)
  int* order;      // of its rows, once factored
};

}  // namespace mujacobian

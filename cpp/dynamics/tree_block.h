// The block of one kinematic tree in an unsymmetric matrix of the dynamics.
#pragma once

namespace mujacobian {

struct TreeBlock {
  int dof, n;      // dofs dof .. dof+n-1
  double* matrix;  // (n, n)
  int* order;      // order of its rows, once it is factored
};

}  // namespace mujacobian

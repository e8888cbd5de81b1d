// The backward pass of differential dynamic programming between bounds on the controls.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

enum class Regularization {
  kControl,  // Quu + mu
  kState,    // Vxx + mu wherever the policy is made
  kNone,
};

// The quadratic problem along a trajectory of T knots, z = (x, u).
struct BackwardProblem {
  int T, nx, nu;
  const double *A, *B;     // (T, nx, nx), (T, nx, nu); those of the last knot are not read
  const double* gradient;  // (T, nz) of the cost; the last control is that of the knot before
  const double* hessian;   // (T, nz, nz padded to whole lanes)
  const double* controls;  // (T, nu)
  const double *lower, *upper;
  Regularization regularization;
  double mu;
};

struct BackwardPass {
  double* steps;       // (T - 1, nu); guesses on entry
  double* gains;       // (T - 1, nu, nx)
  double expected[2];  // change of the cost at step size a: a expected[0] + a^2 expected[1]
};

// Returns the knot at which the problem is not convex, -1 if it is everywhere.
int pass_backward(const BackwardProblem& problem, BackwardPass& out, Arena& arena);

}  // namespace mujacobian

// Backward pass of differential dynamic programming with bounds on the controls.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

enum class Regularization {
  kControl,  // add mu times the scale of each control to the diagonal of Quu
  kState,    // add mu to the diagonal of Vxx, only where steps and gains are computed
  kNone,
};

// Linear-quadratic problem along a trajectory of T knots, with z = (x, u).
struct BackwardProblem {
  int T, nx, nu;
  const double *A, *B;          // (T, nx, nx), (T, nx, nu); the last knot is not read
  const double* gradient;       // (T, nz), of the cost; the last two knots share a control
  const double* hessian;        // (T, nz, nz padded to whole lanes), of the cost
  const double* controls;       // (T, nu)
  const double *lower, *upper;  // (nu)
  Regularization regularization;
  double mu;
  const double* scale;  // (nu), of mu for each control
  const double* gaps;   // (T, nx), from each state to the end of the step before it; null: none
};

struct BackwardPass {
  double* steps;       // (T - 1, nu); initial guesses on entry
  double* gains;       // (T - 1, nu, nx)
  double* values;      // (T, nx), gradients of the value at each knot; may be null
  double expected[2];  // change of cost at step size a: a expected[0] + a^2 expected[1]
};

// Returns the last knot at which the problem is not convex, or -1 if it is convex at all knots.
int pass_backward(const BackwardProblem& problem, BackwardPass& out, Arena& arena);

}  // namespace mujacobian

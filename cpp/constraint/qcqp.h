// The problem that MuJoCo's noslip solver solves for the forces of an elliptic friction cone:
//   min 1/2 x^T A x + b^T x   over   |x_i / mu_i| <= r.
// It takes Newton steps on the multiplier, which end at absolute tolerances. The derivative is that
// of the executed steps, so that it is exact even if they end before convergence (small forces).
// docs/derivations/noslip.md.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

inline constexpr int kMaxFriction = 5;  // tangents, spin and rolls of a contact

struct Qcqp {
  // One evaluation at a multiplier s, in coordinates v = x / mu, with A and b scaled accordingly
  struct Step {
    double inverse[kMaxFriction * kMaxFriction];  // (A + s)^-1
    double v[kMaxFriction];                       // -(A + s)^-1 b
    double w[kMaxFriction];                       // (A + s)^-1 v
    double slope;                                 // 2 v . w
    double length;                                // step to the next multiplier
  };

  int n;
  const double* mu;
  double r;
  bool singular;  // A is too small for MuJoCo, which returns zero
  bool on_edge;   // the multiplier is not zero, and the result is scaled onto the ellipse
  int count;      // number of evaluations
  Step* step;
  double scale;  // factor of the last v in the result
  double x[kMaxFriction];
};

Qcqp solve_qcqp(int n, const double* A, const double* b, const double* mu, double r, Arena& arena);

// Computes the change of x with A, b and r.
void differentiate_qcqp(const Qcqp& p, const double* dA, const double* db, double dr, double* dx);

}  // namespace mujacobian

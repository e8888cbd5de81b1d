// The force that MuJoCo's noslip solver puts into an elliptic friction cone:
//   min 1/2 x^T A x + b^T x   over   |x_i / mu_i| <= r,
// by Newton steps on the multiplier that end at absolute tolerances. The derivative is that of the
// steps taken, exact also where they end early (small forces). docs/derivations/noslip.md.
#pragma once

#include "layout/arena.h"

namespace mujacobian {

inline constexpr int kMaxFriction = 5;  // tangents, spin and rolls of a contact

struct Qcqp {
  // One evaluation at a multiplier s, in scaled coordinates v = x / mu, A and b scaled likewise
  struct Step {
    double inverse[kMaxFriction * kMaxFriction];  // (A + s)^-1
    double v[kMaxFriction];                       // -(A + s)^-1 b
    double w[kMaxFriction];                       // (A + s)^-1 v
    double slope;                                 // 2 v . w
    double length;                                // of the step to the next multiplier
  };

  int n;
  const double* mu;
  double r;
  bool singular;  // A is too small for MuJoCo, which answers zero
  bool on_edge;   // the multiplier is not zero, and the result is put onto the ellipse
  int count;      // evaluations
  Step* step;
  double scale;  // of the last v in the result
  double x[kMaxFriction];
};

Qcqp solve_qcqp(int n, const double* A, const double* b, const double* mu, double r, Arena& arena);

// The change of x with A, b and r.
void differentiate_qcqp(const Qcqp& p, const double* dA, const double* db, double dr, double* dx);

}  // namespace mujacobian

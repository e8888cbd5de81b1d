// The first two derivatives of one update of the noslip solver. docs/derivations/second_order.md.
#pragma once

#include "constraint/noslip.h"

namespace mujacobian {

// An update delta of n forces is a function of the residuals (n), the forces before it (n), their
// limit, and the lower triangle of A, by rows.
struct UpdateVariables {
  int n;
  int size() const { return 2 * n + 1 + n * (n + 1) / 2; }
  int residual(int i) const { return i; }
  int force(int i) const { return n + i; }
  int limit() const { return 2 * n; }
  int mobility(int i, int k) const {
    return 2 * n + 1 + (i < k ? k * (k + 1) / 2 + i : i * (i + 1) / 2 + k);
  }
};

// The derivatives of an update: d(delta), and those of weights . delta of second order.
struct UpdateDerivative {
  double* slope;   // (n, size)
  double* second;  // (size, size)
};

// Returns the derivatives of an update, as it was executed, at these residuals and forces. (HES-65)
UpdateDerivative differentiate_update(const FrictionBlock& friction, const FrictionUpdate& update,
                                      const double* residual, const double* force,
                                      const double* weights, Arena& arena);

}  // namespace mujacobian

// Norms of residuals with their gradients and Hessians, docs/derivations/ilqr.md.
#pragma once

#include <string>

namespace mujacobian {

struct NormKind;

// Returns the norm with this name, which Python uses. Throws std::invalid_argument.
const NormKind* norm_kind(const std::string& name);

struct Norm {
  const NormKind* kind;
  double p, q;

  // Returns the norm of r (n).
  double value(const double* r, int n) const;

  // Returns the norm and writes its gradient (n) and Hessian diag(curvature) + bend r r^T (ILQ-2).
  double expand(const double* r, int n, double* gradient, double* curvature, double& bend) const;
};

}  // namespace mujacobian

// Norms of residuals, with gradient and Hessian, docs/derivations/ilqr.md.
#pragma once

#include <string>

namespace mujacobian {

struct NormKind;

// By the name that Python uses; throws std::invalid_argument.
const NormKind* norm_kind(const std::string& name);

struct Norm {
  const NormKind* kind;
  double p, q;

  // The norm of r (n).
  double value(const double* r, int n) const;

  // The same, its gradient (n), and its Hessian diag(curvature) + bend r r^T             (ILQ-2)
  double expand(const double* r, int n, double* gradient, double* curvature, double& bend) const;
};

}  // namespace mujacobian

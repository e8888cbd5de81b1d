// The third derivative of the cost of an elliptic friction cone.
#pragma once

#include "constraint/force.h"

namespace mujacobian {

// Computes T (count, count), the derivative along `along` of the Hessian of the constraint cost of
// a contact that slides at p.                                                             (HES-34)
inline void cone_third_derivative(const Block& b, const ConePoint& p, const double* along,
                                  double* T) {
  // the direction u/t, and the part of `along` across it
  const int dim = b.count;
  const double mu = b.contact.mu, t = p.t, gap = p.u[0] - mu * t;
  double unit[kMaxRows], across[kMaxRows], gradient[kMaxRows], radial = 0;
  for (int r = 1; r < dim; r++) unit[r] = p.u[r] / t, radial += unit[r] * p.scale[r] * along[r];
  for (int r = 1; r < dim; r++) across[r] = p.scale[r] * along[r] - radial * unit[r];
  unit[0] = across[0] = 0;
  gradient[0] = 1;
  for (int r = 1; r < dim; r++) gradient[r] = -mu * unit[r];
  const double change = p.scale[0] * along[0] - mu * radial;  // of the gap

  for (int r = 0; r < dim; r++)
    for (int c = 0; c < dim; c++) {
      const double projector = (r == c && r > 0 ? 1 : 0) - unit[r] * unit[c];
      const double turned = (across[r] * unit[c] + unit[r] * across[c] + radial * projector) / t;
      const double sum =
          change * projector + gradient[r] * across[c] + across[r] * gradient[c] - gap * turned;
      T[r * dim + c] = -mu / t * p.stiffness * p.scale[r] * p.scale[c] * sum;
    }
}

}  // namespace mujacobian

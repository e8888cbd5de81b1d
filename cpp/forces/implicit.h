// The derivatives of forces that the implicit integrators use.
#pragma once

#include "layout/enums.h"
#include "layout/views.h"

namespace mujacobian {

// Whether the integrator has a matrix with the derivatives of forces with respect to rates.
inline bool has_rates_in_metric(const ModelView& m) {
  const int type = m.opt.integrator;
  return type == integrator::kImplicit || type == integrator::kImplicitFast ||
         type == integrator::kDiscrete;
}

}  // namespace mujacobian

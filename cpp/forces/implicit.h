// Integrators that use derivatives of forces.
#pragma once

#include "layout/enums.h"
#include "layout/views.h"

namespace mujacobian {

// Returns whether the matrix of the integrator contains derivatives of actuator and tendon forces
// with respect to rates.
inline bool is_implicit(const ModelView& m) {
  const int type = m.opt.integrator;
  return type == integrator::kImplicit || type == integrator::kImplicitFast ||
         type == integrator::kDiscrete;
}

}  // namespace mujacobian

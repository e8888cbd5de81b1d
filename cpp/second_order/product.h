// Products of the Hessian of a step with a vector, without the Hessian: the vector-Jacobian product
// of the step, and its derivative along a direction. docs/derivations/second_order.md.
#pragma once

#include "second_order/hessian.h"

namespace mujacobian {

// A direction of the inputs of a step; null: zero.
struct StepDirection {
  const double* state;  // (nx)
  const double* ctrl;   // (nu)
  const double* force;  // (nv), qfrc_applied
};

// Cotangents of the inputs of a step; null: not computed.
struct InputCotangent {
  double* state;  // (nx)
  double* ctrl;   // (nu)
  double* force;  // (nv)
};

// Writes `first` = (A, B, Bf)^T next, which is possible only without cotangents of sensors, and the
// derivative along `along`: `second` = H along + (A, B, Bf)^T change, where `change` (nx) is the
// change of the cotangent of the next state; null: zero. The rest is as for `hessian`. (HVP-1)
void pull_back_twice(const ModelView& m, const DataView& d, const StepCotangent& given,
                     const double* change, const StepDirection& along, const InputCotangent& first,
                     const InputCotangent& second, Arena& arena);

}  // namespace mujacobian

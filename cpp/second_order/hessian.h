// The second derivative of one mj_step, contracted with a cotangent of the next state:
//   H = sum_i lambda_i d2 x+_i / dz dz,   z = (state, controls, applied forces),
// in exponential coordinates. docs/derivations/second_order.md.
#pragma once

#include "step/kept_step.h"

namespace mujacobian {

// Row-major outputs. Those that are null are not written.
struct HessianOutputs {
  double* xx;  // (nx, nx), nx = 2nv + na
  double* xu;  // (nx, nu)
  double* uu;  // (nu, nu)
  double* xf;  // (nx, nv), with respect to qfrc_applied
  double* uf;  // (nu, nv)
  double* ff;  // (nv, nv)
};

// The cotangent of a step.
struct StepCotangent {
  const double* next;     // (nx), of the next state
  const double* sensors;  // (nsensordata); null: zero
};

// Writes the second derivative for a cotangent, from an mjData on which mj_forward has just run.
// Throws Unsupported for elements whose second derivative is not supported, and std::domain_error
// if no derivative exists.
void hessian(const ModelView& m, const DataView& d, const StepCotangent& given,
             const HessianOutputs& out, Arena& arena);

// The same from a step that has been kept with its first derivatives.
void hessian(const ModelView& m, const KeptStep& step, const StepCotangent& given,
             const HessianOutputs& out, Arena& arena);

// Returns the outputs of item `index` of a batch. The blocks of all items are consecutive in `out`.
HessianOutputs batch_item(const ModelView& m, const HessianOutputs& out, std::size_t index);

}  // namespace mujacobian

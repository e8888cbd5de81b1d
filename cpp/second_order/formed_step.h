// Products of the second derivative of a step with a vector, where the matrices are formed: for RK4
// and the noslip solver.
#pragma once

#include "second_order/forms.h"
#include "second_order/product.h"

namespace mujacobian {

// A step whose derivatives have been formed.
struct FormedStep {
  const double* jacobian[3];  // A (nx, nx), B (nx, nu), Bf (nx, nv); the last may be null
  const double* hessian;  // (width, width) over the state, the controls and, if wide enough, the
                          // applied forces and parameters
  int width;
};

// Forms the derivatives of a step that has been differentiated twice.
FormedStep form_step(const ModelView& m, const DataView& d, const StepCurvature& curved,
                     const StepCotangent& given, bool forces, Arena& arena);

// Writes the results of `pull_back_twice` for such a step.
void pull_back_formed(const ModelView& m, const FormedStep& step, const StepCotangent& given,
                      const double* change, const StepDirection& along, const InputCotangent& first,
                      const InputCotangent& second);

}  // namespace mujacobian

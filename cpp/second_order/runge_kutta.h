// The second derivative of a step of the Runge-Kutta integrator. docs/derivations/second_order.md.
#pragma once

#include "second_order/product.h"

namespace mujacobian {

// The functions `hessian` and `pull_back_twice` for the integrator RK4. `m` and `d` have a
// converged collider.
void runge_kutta_hessian(const ModelView& m, const DataView& d, const StepCotangent& given,
                         bool forces, const HessianOutputs& out, Arena& arena);
void pull_back_runge_kutta(const ModelView& m, const DataView& d, const StepCotangent& given,
                           const double* change, const StepDirection& along,
                           const InputCotangent& first, const InputCotangent& second,
                           const CurvedParameters* params, Arena& arena);

}  // namespace mujacobian

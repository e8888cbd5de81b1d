// Second derivative of the damping that the integrator treats implicitly, contracted with a
// multiplier: nu . h Dhat(q, v, inputs) w. docs/derivations/second_order.md.
#pragma once

#include "step/differential.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Adds the second derivatives of nu . h Dhat w with respect to the inputs and w, except for those
// of paths. The rows `mixed` of the form belong to w.
void add_damping_hessian(const ModelView& m, const DataView& d, const StepDifferential& s,
                         const double* nu, const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

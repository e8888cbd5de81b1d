// Second derivatives of the forces of the medium. docs/derivations/second_order.md.
#pragma once

#include "forces/fluid.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Adds the second derivatives of mu . tau, where tau is the generalized force of the medium.
// (HES-53)
void add_fluid_hessian(const ModelView& m, const DataView& d, const double* mu,
                       const QuadraticForm& form, Arena& arena);

// Adds `scale` times the second derivatives of nu . D w, with the matrix D and the arguments of
// add_fluid_damping_change. The rows `mixed` of the form belong to w.                    (HES-54)
void add_fluid_damping_hessian(const ModelView& m, const DataView& d, FluidPart part,
                               bool full_pattern, const double* nu, const double* w, double scale,
                               const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

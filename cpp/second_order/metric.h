// Second derivatives of the metric of the discrete integrator. docs/derivations/second_order.md.
#pragma once

#include "step/differential.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// The reason why the discrete integrator has no second derivative in some states.
inline constexpr const char* kDiscreteRows =
    "second derivatives of active constraint rows are not supported";

// Adds the second derivatives of mu . ((Mh - M) a + h K v), if the integrator is the discrete one.
// The rows `mixed` of the form belong to the acceleration a. Throws Unsupported if a constraint row
// is active.                                                                      (HES-67, HES-68)
void add_metric_hessian(const ModelView& m, const DataView& d, const StepDifferential& s,
                        const double* mu, const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

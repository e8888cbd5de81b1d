// Second derivatives of the exact diagonal of the flag diagexact. docs/derivations/second_order.md.
#pragma once

#include "dynamics/forward.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// The reason why the exact diagonal of an adhesive contact has no second derivative.
inline constexpr const char* kExactAdhesion =
    "second derivatives of adhesive contacts are not supported";

// Adds the second derivatives of -mu . J^T f that come from the exact diagonal, if the flag
// diagexact is set. The rows `mixed` of the form belong to the acceleration. Throws Unsupported for
// adhesive contacts, and if the noslip solver acts. (HES-60)
void add_exact_diagonal_hessian(const ModelView& m, const DataView& d,
                                const ForwardDynamics& forward, const double* mu,
                                const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

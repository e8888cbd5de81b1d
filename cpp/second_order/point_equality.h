// Second derivatives of connect and weld equalities, contracted with the multipliers of a step.
// docs/derivations/second_order.md.
#pragma once

#include "constraint/block.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Adds the second derivatives of -mu . J^T f for all connects and welds at the acceleration `acc`.
// The rows `mixed` of the form belong to the acceleration. Throws Unsupported where the impedance
// has no second derivative.
void add_point_equality_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                                 const double* acc, const double* mu, const QuadraticForm& form,
                                 Arena& arena);

}  // namespace mujacobian

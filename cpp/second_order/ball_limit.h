// Second derivatives of the limit of a ball joint. docs/derivations/second_order.md.
#pragma once

#include "constraint/block.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Adds the second derivatives of -mu . J^T f of a block that is the limit of a ball joint, at the
// acceleration `acc`. The rows `mixed` of the form belong to the acceleration.            (HES-40)
void add_ball_limit_hessian(const ModelView& m, const DataView& d, const Block& block,
                            const double* acc, const double* mu, const QuadraticForm& form);

}  // namespace mujacobian

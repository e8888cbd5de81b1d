// Second derivatives of constraint rows, contracted with the multiplier of the equation of motion.
// docs/derivations/second_order.md.
#pragma once

#include "constraint/block.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Adds the second derivatives of -mu . J^T f(J a - aref) of all active blocks at acceleration
// `acc`, with respect to q, v and the acceleration.
void add_row_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                      const double* acc, const double* mu, const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

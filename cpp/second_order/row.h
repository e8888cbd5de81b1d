// Second derivatives of constraint rows, contracted with the multiplier of the equation of motion.
// docs/derivations/second_order.md.
#pragma once

#include "second_order/row_shift.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Adds the second derivatives of -mu . J^T f(J a - aref) of all active blocks at acceleration
// `acc`, with respect to q, v and the acceleration. `shift` has further terms per block; null:
// none.
void add_row_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                      const double* acc, const double* mu, const RowShift* shift,
                      const QuadraticForm& form, Arena& arena);

// Adds the second derivatives of weights . J y with respect to the positions, for a fixed joint
// motion y (nv) and weights of the rows of a block.
void add_row_power_hessian(const ModelView& m, const DataView& d, const Blocks& blocks,
                           const Block& block, const double* weights, const double* y,
                           const QuadraticForm& form, Arena& arena);

// Returns whether a block is the limit of a ball joint.
bool is_ball_limit(const ModelView& m, const Block& b);

// Adds the second derivatives of `weight` times the force of an active limit of a joint or tendon.
void add_limit_force_hessian(const ModelView& m, const DataView& d, const Block& block,
                             const double* acc, double weight, const QuadraticForm& form,
                             Arena& arena);

}  // namespace mujacobian

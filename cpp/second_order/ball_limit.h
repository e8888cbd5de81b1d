// Second derivatives of the limit of a ball joint. docs/derivations/second_order.md.
#pragma once

#include "constraint/block.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Add the second derivatives of a block that is the limit of a ball joint, at the acceleration
// `acc`. The rows `mixed` of the form belong to the acceleration.                        (HES-40)

// Of the power -mu . J^T f.
void add_ball_limit_hessian(const ModelView& m, const DataView& d, const Block& block,
                            const double* acc, const double* mu, const QuadraticForm& form);

// Of `weight` times the force f of the row.
void add_ball_limit_force(const ModelView& m, const DataView& d, const Block& block,
                          const double* acc, double weight, const QuadraticForm& form);

// Of `weight` times the position of the row, or of its rate J v.
void add_ball_limit_value(const ModelView& m, const DataView& d, const Block& block, bool rate,
                          double weight, const QuadraticForm& form);

// Adds the second derivatives of weight J y with respect to the positions, for a fixed joint motion
// y (nv).
void add_ball_limit_power(const ModelView& m, const DataView& d, const Block& block, double weight,
                          const double* y, const QuadraticForm& form);

}  // namespace mujacobian

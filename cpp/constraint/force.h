// Constraint forces and their Hessians at an acceleration, docs/derivations/constraints.md.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Set the block's force and Hessian at acceleration `acc`, in the block's own coordinates, from
// MuJoCo's reference and D (its stored states can be stale).
void evaluate(const ModelView& m, const DataView& d, const double* acc, Block& block);

}  // namespace mujacobian

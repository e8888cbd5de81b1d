// Constraint forces and their Hessians at an acceleration, docs/derivations/constraints.md.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Set the block's force and Hessian at acceleration `acc`, in the block's own coordinates, from
// MuJoCo's reference and D (its stored states can be stale).
void evaluate(const ModelView& m, const DataView& d, const double* acc, Block& block);

// Edge n + mu t_k of a pyramid (side 0) or n - mu t_k (side 1) with `moved` = J a.
struct Edge {
  double mu;                // with its sign
  double force, stiffness;  // both zero where it does not press
};
Edge pyramid_edge(const DataView& d, const Block& block, const double* moved, int k, int side);

}  // namespace mujacobian

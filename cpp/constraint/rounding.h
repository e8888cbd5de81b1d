// Rounding errors of constraint forces that cancel, and of small motions under very large forces.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Returns the largest magnitude.
double largest(const double* x, int n);

// Returns whether the gradient is only the rounding error of forces that cancel, such as those of
// the two sides of a friction pyramid. This error is proportional to the size of the forces. Forces
// are H (J a - aref), with |H_rc| <= sqrt(H_rr H_cc). If J a - aref of a block is lost to rounding,
// its force is not known. The result is then false, and `lost` is this block, otherwise null.
bool is_rounding(const ModelView& m, const DataView& d, const Blocks& blocks, const double* acc,
                 const double* gradient, Arena& arena, const Block** lost);

// Throws std::domain_error if forces are so large that the derivative of the motion is lost to
// rounding: the rounding error of a force f moves dof i by eps f / K_ii. MuJoCo sets R of rows that
// cannot push their bodies to 1e-15, so that their forces are about 1e18, even if they act on no
// dof.
void require_resolved(const ModelView& m, const DataView& d, const Blocks& blocks, Arena& arena);

}  // namespace mujacobian

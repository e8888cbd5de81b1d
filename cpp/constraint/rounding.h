// Rounding errors of constraint forces that cancel, and of small motions under very large forces.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Returns the largest magnitude.
double largest(const double* x, int n);

enum class Certainty {
  kGradient,       // the gradient is not zero
  kRounding,       // it is the rounding error of its summands
  kUnknownForces,  // it is, and the forces of some blocks are rounding errors as well
};

// Compares the gradient with the rounding error of forces that cancel, such as those of the two
// sides of a friction pyramid. This error is proportional to the size of the forces. Forces are
// H (J a - aref), with |H_rc| <= sqrt(H_rr H_cc). If J a - aref of a block is itself a rounding
// error, its force is unknown.                                                           (ROW-17)
Certainty gradient_certainty(const ModelView& m, const DataView& d, const Blocks& blocks,
                             const double* acc, const double* gradient, Arena& arena);

// Sets Block::unknown of unknown forces to the size of their summands. Throws std::domain_error if
// the state or the Hessian of such a block is not known either.
void mark_unknown_forces(const ModelView& m, const DataView& d, Blocks& blocks, const double* acc);

// Throws std::domain_error if forces are so large that the derivative of the motion is lost to
// rounding: the rounding error of a force f moves dof i by eps f / K_ii. MuJoCo sets R of rows that
// cannot push their bodies to 1e-15, so that their forces are about 1e18, even if they act on no
// dof. The error of an unknown force is that of its summands.
void require_resolved(const ModelView& m, const DataView& d, const Blocks& blocks, Arena& arena);

}  // namespace mujacobian

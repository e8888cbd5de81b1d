// What rounding leaves of constraint forces that cancel, and of motions beside huge ones.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// The largest magnitude.
double largest(const double* x, int n);

// Whether the gradient is nothing but the rounding of known forces: those that cancel, as those of
// the two sides of a friction pyramid do, leave as much of it as they are large. Forces are
// H (J a - aref), and |H_rc| <= sqrt(H_rr H_cc); they are known unless J a - aref cancels.
bool is_rounding(const ModelView& m, const DataView& d, const Blocks& blocks, const double* acc,
                 const double* gradient, Arena& arena);

// Throw where forces are so large that rounding hides what their derivative leaves of the motion: a
// force f turned by rounding moves dof i by eps f / K_ii. MuJoCo gives rows of bodies that cannot
// be pushed a softness of 1e-15 and so forces of 1e18, though no dof may feel them.
void require_resolved(const ModelView& m, const DataView& d, const Blocks& blocks, Arena& arena);

}  // namespace mujacobian

// Idle contacts, which cannot push their bodies. A body that can only rotate about an axis through
// its contact point cannot be pushed there: J is zero, also in every nearby state. MuJoCo sets R of
// such a row to 1e-15, so that its force is about 1e16, but this force acts on no dof.  (ROW-13)
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Removes the dofs of contacts whose Jacobian and its derivative are zero, so that they have no
// effect. Throws std::domain_error if MuJoCo's own Jacobian contains rounding errors that move the
// dofs: such a step has no derivative.
void remove_idle(const ModelView& m, const DataView& d, Blocks& blocks, Arena& arena);

}  // namespace mujacobian

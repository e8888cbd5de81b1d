// Contacts that push nothing. A body that can only turn about an axis through its contact cannot be
// pushed there: J is zero, and stays zero in every nearby state. MuJoCo gives such a row a softness
// of 1e-15 and so a force of 1e16, of which no dof feels anything.                      (ROW-13)
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Take the dofs from the contacts whose Jacobian is zero together with its derivative, so that they
// have no part in anything. Throws std::domain_error where MuJoCo's own Jacobian is not zero but
// rounding, which moves its dofs: that step has no derivative.
void remove_idle(const ModelView& m, const DataView& d, Blocks& blocks, Arena& arena);

}  // namespace mujacobian

// Idle contacts, which cannot push their bodies. A body that can only rotate about an axis through
// its contact point cannot be pushed there: J is zero, also in every nearby state. MuJoCo sets R of
// such a row to 1e-15, so that its force is about 1e16, but this force acts on no dof.  (ROW-13)
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Removes the dofs of contacts whose Jacobian and its derivative are zero, so that they have no
// effect. Returns the forces of the rounding errors of MuJoCo's own Jacobian, one per dof, or null
// if they are negligible.
const double* remove_idle(const ModelView& m, const DataView& d, Blocks& blocks, Arena& arena);

// Throws std::domain_error if the forces `noise` of rounding errors change a velocity, with `moved`
// the accelerations that they cause: such a step has no derivative.
void require_still(const ModelView& m, const double* noise, const double* moved);

// Throws std::domain_error about the rounding error of the force on a dof.
[[noreturn]] void refuse_noise(int dof, double force);

}  // namespace mujacobian

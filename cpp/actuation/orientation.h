// Orientation servos: a torque towards a target rotation. The three outputs are one vector.
// docs/derivations/actuation.md.
#pragma once

#include "actuation/activation.h"
#include "tree/path.h"

namespace mujacobian {

// Writes the three path forces of the actuator to `forces`.
void orientation_forces(const ModelView& m, const DataView& d, int actuator,
                        const Variables<Number>& x, PathForce forces[3], Arena& arena);

}  // namespace mujacobian

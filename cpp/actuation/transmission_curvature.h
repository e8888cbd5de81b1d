// Second derivatives of the lengths and the moments of actuators. docs/derivations/second_order.md.
#pragma once

#include "tree/path.h"

namespace mujacobian {

// Returns whether the moments of an actuator depend on the position.
bool has_moving_moment(const ModelView& m, int actuator);

// Returns the reason why the moments of an actuator have no second derivative, or null.
const char* transmission_curvature_refusal(const ModelView& m, int actuator);

// Returns d2l/dq2 and d2(y . m)/dq2 over the dofs of the path of an actuator with one output, for a
// joint motion `y` (nv). On a tendon, the path is that of the tendon. Throws Unsupported for
// adhesion, whose function is adhesion_bend.
PathBend transmission_bend(const ModelView& m, const DataView& d, int actuator, const double* y,
                           Arena& arena);

}  // namespace mujacobian

// Views of the same position at another velocity.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// Returns a view at rest: the velocities of bodies and the rates of axes are zero.
DataView at_rest(const ModelView& m, const DataView& d, Arena& arena);

// Returns a view with the velocities of bodies and the rates of axes at joint velocity `qvel`,
// which must outlive the view.
DataView at_velocity(const ModelView& m, const DataView& d, const double* qvel, Arena& arena);

}  // namespace mujacobian

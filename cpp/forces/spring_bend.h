// Second derivatives of the stiffness of joint springs in the metric of the discrete integrator.
#pragma once

#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

// Writes the second derivatives of the stiffnesses of `spring_slopes` with respect to the positions
// of their dofs.                                                                          (HES-67)
void spring_bends(const ModelView& m, const DataView& d, int joint, Mat3 out[2]);

}  // namespace mujacobian

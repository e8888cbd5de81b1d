// Wrenches with a direction fixed in the world, applied at the bodies' centres of mass:
// xfrc_applied and gravity compensation. docs/derivations/external.md.
#pragma once

#include "smooth/residual.h"

namespace mujacobian {

// Add d(sum_b J_b^T xfrc_b)/dq for xfrc_applied.
void add_applied(const ModelView& m, const DataView& d, const Residual& residual, Arena& arena);

// Add the derivative of gravity compensation. Rows with frozen[dof] set, whose actuator force is
// saturated, are left out where the compensation passes through actuators.
void add_gravity_compensation(const ModelView& m, const DataView& d, const unsigned char* frozen,
                              const Residual& residual, Arena& arena);

}  // namespace mujacobian

// Wrenches with a direction fixed in the world, applied at the bodies' centres of mass:
// xfrc_applied and gravity compensation. docs/derivations/external.md.
#pragma once

#include "spatial/vector.h"
#include "tree/dof_rows.h"

namespace mujacobian {

// Of the wrenches on everything under a body.
struct WrenchSum {
  Force wrench;  // about the reference point
  Mat3 turn;     // angular block of E                                                   (EXT-3)
};

// E S = (turn w, f x w): change of the sum beyond being carried along by `axis`          (EXT-3)
inline Force wrench_change(const WrenchSum& sum, Motion axis) {
  return {sum.turn * axis.ang, cross(sum.wrench.lin, axis.ang)};
}

// Sums of xfrc_applied for every body but the world, null where there is none.
const WrenchSum* applied_wrenches(const ModelView& m, const DataView& d, Arena& arena);

// Add d(sum_b J_b^T xfrc_b)/dq for xfrc_applied.
void add_applied(const ModelView& m, const DataView& d, const DofRows& residual, Arena& arena);

// Add the derivative of gravity compensation. Rows with frozen[dof] set, whose actuator force is
// saturated, are left out where the compensation passes through actuators.
void add_gravity_compensation(const ModelView& m, const DataView& d, const unsigned char* frozen,
                              const DofRows& residual, Arena& arena);

}  // namespace mujacobian

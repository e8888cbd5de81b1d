// Spatial accelerations of the bodies, and rates of the axes of dofs,
// docs/derivations/kinematics.md.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

// Rates that derivatives with respect to a dof need in addition to its axis S and S' = cdof_dot.
struct DofRates {
  Motion second;  // S'' = A_pre x S + V_pre x S'                                         (KIN-6)
  Motion sum;     // S' + V_post x S                                                      (KIN-7)
};

struct MotionSweep {
  const Motion* acceleration;  // of each body, about the reference point
  const DofRates* rates;       // of each dof
};

// The acceleration of the world that replaces gravity in the equations of motion: -gravity, or zero
// if gravity is disabled.
Vec3 base_acceleration(const ModelView& m);

// Returns the accelerations at joint acceleration `acc` (null: zero) if the world accelerates by
// `base`.
MotionSweep sweep_motion(const ModelView& m, const DataView& d, const double* acc, Vec3 base,
                         Arena& arena);

// Derivatives of the velocity V and acceleration A of a body with respect to a dof k that moves it:
//   dV/dq_k = S' + S x V,   dA/dq_k = S'' + S x A + S' x V                         (KIN-4, KIN-5)
//   dV/dv_k = S,            dA/dv_k = sum + S x V                                         (KIN-7)
inline Motion velocity_dq(Motion axis, Motion axis_dot, Motion v) {
  return axis_dot + cross(axis, v);
}
inline Motion acceleration_dq(Motion axis, Motion axis_dot, const DofRates& rates, Motion v,
                              Motion a) {
  return rates.second + cross(axis, a) + cross(axis_dot, v);
}
inline Motion acceleration_dv(Motion axis, const DofRates& rates, Motion v) {
  return rates.sum + cross(axis, v);
}

}  // namespace mujacobian

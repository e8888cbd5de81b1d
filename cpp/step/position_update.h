// The update of positions and velocities at the end of a step: v+ = v + h w, q+ = q [+] h v+.
#pragma once

#include "layout/enums.h"
#include "layout/views.h"
#include "spatial/rotation.h"

namespace mujacobian {

// Visits the dofs of all joints: calls number(dof), or rotation(first dof, turn) with the rotation
// vector `turn` = h v+ of the step.                                                        (INT-2)
template <class Number, class Rotation>
void visit_joints(const ModelView& m, const DataView& d, const double* w, Number number,
                  Rotation rotation) {
  const double h = m.opt.timestep;
  for (int dof = 0; dof < m.nv;) {
    int jnt = m.dof_jntid[dof], type = m.jnt_type[jnt];
    if (type != joint::kBall && (type != joint::kFree || dof < m.jnt_dofadr[jnt] + 3)) {
      number(dof++);
      continue;
    }
    rotation(dof, h * (load3(d.qvel + dof) + h * load3(w + dof)));
    dof += 3;
  }
}

// Writes the changes of q+ and v+ for a change `dw` of w and the change `state` of the state.
// (ADJ-1)
void integrate_tangent(const ModelView& m, const DataView& d, const double* w, const double* dw,
                       const double* state, double* out);

// The transpose: writes the cotangents of w, and of position and velocity at fixed w, for the
// cotangent `given` of the next state.                                                     (ADJ-2)
void integrate_cotangent(const ModelView& m, const DataView& d, const double* w,
                         const double* given, double* through_w, double* state);

}  // namespace mujacobian

// Derivative of inverse dynamics tau = M(q) a + c(q, v), docs/derivations/inverse_dynamics.md.
#pragma once

#include "layout/topology.h"
#include "tree/dof_rows.h"

namespace mujacobian {

// Set the residual's q and v columns to -d(M a + c)/dq and -d(M a + c)/dv at acceleration `acc`,
// in one pass over the bodies and O(nv depth) work. Rigid-body part only: armature is constant and
// tendon armature is added by the tendons.
void inverse_dynamics_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                                 const double* acc, const DofRows& residual, Arena& arena);

}  // namespace mujacobian

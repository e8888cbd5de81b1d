// Derivative of inverse dynamics tau = M(q) a + c(q, v), docs/derivations/inverse_dynamics.md.
#pragma once

#include "layout/topology.h"
#include "tree/dof_rows.h"

namespace mujacobian {

// Sets the q and v columns of the residual to -d(M a + c)/dq and -d(M a + c)/dv at acceleration
// `acc`. The cost is O(nv depth). This is the rigid-body part: armature is constant, and
// add_tendon_armature (forces/tendon.h) adds the armature of tendons.
void inverse_dynamics_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                                 const double* acc, const DofRows& residual, Arena& arena);

}  // namespace mujacobian

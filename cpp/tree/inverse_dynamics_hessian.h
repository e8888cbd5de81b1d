// Second derivative of inverse dynamics contracted with a vector, mu . (M(q) a + c(q, v)),
// docs/derivations/second_order.md.
#pragma once

#include "layout/topology.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Adds the second derivatives of mu . (M a + c) at acceleration `acc` with respect to q, v and the
// acceleration, in exponential coordinates. The cost is O(nv depth). This is the rigid-body part:
// armature is constant.
void add_inverse_dynamics_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                                  const double* acc, const double* mu, const QuadraticForm& form,
                                  Arena& arena);

// The same for sum_b U_b . F_b, with the forces F_b of the bodies and virtual velocities U_b that
// move rigidly with their bodies: `virt` has them as cvel, and the rates of the axes as cdof_dot.
void add_power_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                       const double* acc, const DataView& virt, const QuadraticForm& form,
                       Arena& arena);

// Adds the second derivatives of mu . M x with respect to q and x.
void add_inertia_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                         const double* x, const double* mu, const QuadraticForm& form,
                         Arena& arena);

}  // namespace mujacobian

// Second derivatives of the inertia of tendons, which their armature adds to M and to the bias
// force. docs/derivations/second_order.md.
#pragma once

#include "layout/topology.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Adds the second derivatives of mu . M_t x, where M_t is the part of tendon armature in M. The
// rows `mixed` of the form belong to x.                                                   (HES-57)
void add_tendon_inertia_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                                const double* x, const double* mu, const QuadraticForm& form,
                                Arena& arena);

// Adds the second derivatives of mu . c_t, where c_t is the part in the bias force.       (HES-58)
void add_tendon_bias_hessian(const ModelView& m, const DataView& d, const double* mu,
                             const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

// Second derivatives of connect and weld equalities, contracted with the multipliers of a step.
// docs/derivations/second_order.md.
#pragma once

#include "second_order/contact.h"

namespace mujacobian {

// Adds the second derivatives of -mu . J^T f for all connects and welds at the acceleration `acc`.
// The rows `mixed` of the form belong to the acceleration. Throws Unsupported where the impedance
// has no second derivative.
void add_point_equality_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                                 const double* acc, const double* mu, const QuadraticForm& form,
                                 Arena& arena);

// The same for virtual velocities of the bodies in the place of mu, and one active connect or weld.
// `sweep` is the motion at the acceleration, without gravity.
void add_point_equality_hessian(const ModelView& m, const DataView& d, const Block& block,
                                const MotionSweep& sweep, const VirtualMotion& virt,
                                const QuadraticForm& form, Arena& arena);

// Adds the second derivatives of weights . J y with respect to the positions, for a fixed joint
// motion y (nv) and weights of the rows of a connect or weld.
void add_point_equality_power(const ModelView& m, const DataView& d, const Blocks& blocks,
                              const Block& block, const double* weights, const double* y,
                              const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

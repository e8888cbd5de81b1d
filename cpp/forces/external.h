// Wrenches with a fixed direction in the world that act at the centers of mass of bodies:
// xfrc_applied and gravity compensation. docs/derivations/external.md.
#pragma once

#include "spatial/vector.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// The sum of the wrenches on the subtree of a body.
struct WrenchSum {
  Force wrench;  // about the reference point
  Mat3 turn;     // angular block of E                                                   (EXT-3)
};

// Returns E S = (turn w, f x w): the change of the sum along `axis`, in addition to its rigid
// motion with the subtree.                                                               (EXT-3)
inline Force wrench_change(const WrenchSum& sum, Motion axis) {
  return {sum.turn * axis.ang, cross(sum.wrench.lin, axis.ang)};
}

// Returns the sums of xfrc_applied for every body except the world, or null if all of it is zero.
const WrenchSum* applied_wrenches(const ModelView& m, const DataView& d, Arena& arena);

// Adds d(sum_b J_b^T xfrc_b)/dq for xfrc_applied.
void add_applied(const ModelView& m, const DataView& d, const DofRows& residual, Arena& arena);

// Adds the derivative of gravity compensation. If the compensation of a joint is part of its
// actuator force, the row is omitted where this force is saturated (frozen[dof] set).
void add_gravity_compensation(const ModelView& m, const DataView& d, const unsigned char* frozen,
                              const DofRows& residual, Arena& arena);

// Add the second derivatives of mu . tau, where tau is the generalized force of xfrc_applied or of
// gravity compensation, with the same omitted rows.                                        (HES-18)
void add_applied_hessian(const ModelView& m, const DataView& d, const double* mu,
                         const QuadraticForm& form, Arena& arena);
void add_gravity_compensation_hessian(const ModelView& m, const DataView& d,
                                      const unsigned char* frozen, const double* mu,
                                      const QuadraticForm& form, Arena& arena);

// Adds the second derivatives of sum_b U_b . W_b for xfrc_applied W_b, with the virtual velocities
// of add_power_hessian.
void add_applied_power_hessian(const ModelView& m, const DataView& d, const DataView& virt,
                               const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

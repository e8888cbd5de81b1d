// Second derivatives of contacts, contracted with the multipliers of a step.
// docs/derivations/second_order.md.
#pragma once

#include "second_order/row_shift.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// The rows of contacts that slide on elliptic cones. Their forces are not linear in x = J a - aref,
// so that the second derivative contains X^T T X, where X is the total derivative of x.  (HES-33)
struct SlidingRows {
  const Block* block;
  const double *q, *v;            // derivative of x with respect to q and v, as BlockChange
  double T[kMaxRows * kMaxRows];  // third derivative of the cost along J mu
  const SlidingRows* next;
};

// Virtual velocities of the bodies, which move rigidly with them, and the rates of the axes of the
// dofs at these velocities.
struct VirtualMotion {
  const Motion *moved, *rate;
};

// Returns those of a joint motion y (nv).
VirtualMotion virtual_motion(const ModelView& m, const DataView& d, const Blocks& blocks,
                             const double* y, Arena& arena);

// Numbers omega that multiply the forces of a contact, one per row.
struct VirtualRows {
  const double* rows;
  // The rows of the relative motion of the two bodies; null: they are those of a velocity that is
  // fixed in the world, or, if it is zero, constants.
  const VirtualMotion* motion = nullptr;
  Vec3 fixed{0, 0, 0};
};

// Adds the second derivatives of -mu . J^T f for all contacts at the acceleration `acc`. The rows
// `mixed` of the form belong to the acceleration. Those of the sliding rows are not added; the rows
// are put in front of the list `sliding`. `shift` has further terms per block; null: none. Throws
// Unsupported for contacts without a second derivative.
void add_contact_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                          const double* acc, const double* mu, const RowShift* shift,
                          const QuadraticForm& form, const SlidingRows*& sliding, Arena& arena);

// The same for -omega . f of one active contact.
void add_contact_hessian(const ModelView& m, const DataView& d, const Block& block,
                         const BlockMotion& acc, const VirtualRows& virt, const QuadraticForm& form,
                         const SlidingRows*& sliding, Arena& arena);

// Adds the second derivatives of weights . J y with respect to the positions, for a fixed joint
// motion y (nv) and weights of the rows of a contact.
void add_contact_power(const ModelView& m, const DataView& d, const Blocks& blocks,
                       const Block& block, const double* weights, const double* y,
                       const QuadraticForm& form, Arena& arena);

// Adds the second derivatives of the sliding rows of component c to its matrix H, from the
// derivatives of the acceleration. H is symmetric, and has the stride of the component.
void add_sliding_rows(const SlidingRows* rows, const DofRows& acceleration, int c, double* H,
                      Arena& arena);

// Adds the product of the second derivatives of the sliding rows of component c with a direction:
// `x` has a number per column, and `change` is the change of the acceleration. Adds to numbers per
// column, and to the cotangent `cotangent` of the acceleration.                           (HVP-1)
void add_sliding_product(const SlidingRows* rows, int c, const double* x, const DofRows& change,
                         double* columns, const DofRows& cotangent);

}  // namespace mujacobian

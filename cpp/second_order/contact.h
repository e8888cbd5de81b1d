// Second derivatives of contacts, contracted with the multipliers of a step.
// docs/derivations/second_order.md.
#pragma once

#include "constraint/block.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// The rows of contacts that slide on elliptic cones. Their forces are not linear in x = J a - aref,
// so that the second derivative contains X^T T X, where X is the total derivative of x.  (HES-33)
struct SlidingRows {
  struct Contact {
    const Block* block;
    const double *q, *v;            // derivative of x with respect to q and v, as BlockChange
    double T[kMaxRows * kMaxRows];  // third derivative of the cost along J mu
  };
  Contact* contact;
  int count;
};

// Adds the second derivatives of -mu . J^T f for all contacts at the acceleration `acc`, except for
// those of the sliding rows, which it returns. The rows `mixed` of the form belong to the
// acceleration. Throws Unsupported for contacts without a second derivative.
SlidingRows add_contact_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                                 const double* acc, const double* mu, const QuadraticForm& form,
                                 Arena& arena);

// Adds the second derivatives of the sliding rows of component c to its matrix H, from the
// derivatives of the acceleration. H is symmetric, and has the stride of the component.
void add_sliding_rows(const SlidingRows& rows, const DofRows& acceleration, int c, double* H,
                      Arena& arena);

// Adds the product of the second derivatives of the sliding rows of component c with a direction:
// `x` has a number per column, and `change` is the change of the acceleration. Adds to numbers per
// column, and to the cotangent `cotangent` of the acceleration.                           (HVP-1)
void add_sliding_product(const SlidingRows& rows, int c, const double* x, const DofRows& change,
                         double* columns, const DofRows& cotangent);

}  // namespace mujacobian

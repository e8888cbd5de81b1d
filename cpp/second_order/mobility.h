// Second derivatives of the mobilities J_a M^-1 J_b^T of constraint rows.
// docs/derivations/second_order.md.
#pragma once

#include "constraint/block.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// A row J, a combination of the rows of a block, with the motion that a unit of its force causes.
struct MobileRow {
  const Block* block;
  double weight[kMaxRows];  // of the rows of the block
  double* row;              // (nv): J
  double* z;                // (nv): M^-1 J^T
  DofRows turned;           // q columns: d(J^T)/dq
  DofRows pushed;           // q columns: d(J^T)/dq - (dM/dq) z
  DofRows dz;               // q columns: dz/dq
};

// Returns the row with these weights of the rows of an active block. `motion` is that of the blocks
// at any acceleration, and `layout` defines the components.
MobileRow make_mobile_row(const ModelView& m, const DataView& d, const Topology& tree,
                          const Block& block, const double* weight, const BlockMotion& motion,
                          const DofRows& layout, Arena& arena);

// Returns J_a M^-1 J_b^T.
double mobility(const ModelView& m, const MobileRow& a, const MobileRow& b);

// Adds `scale` times the derivative of this number with respect to q to `out` (nv).
void add_mobility_change(const ModelView& m, const MobileRow& a, const MobileRow& b, double scale,
                         const DofRows& layout, double* out);

// Adds the second derivatives of sum_ab weight_ab J_a M^-1 J_b^T, with a symmetric matrix of
// weights (count, count) between rows of one component.                                   (HES-61)
void add_mobility_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                          const Blocks& blocks, const MobileRow* rows, int count,
                          const double* weight, const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

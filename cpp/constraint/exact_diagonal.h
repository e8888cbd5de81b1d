// The flag diagexact: R is proportional to the exact diagonal J M^-1 J^T, which depends on q.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// The row whose diagonal entry determines R of the rows first .. last-1. Every row has its own,
// except that all rows of a contact use the first one, which is an edge for a pyramid.
struct Source {
  double weight[kMaxRows];  // the row as a combination of the rows of the block
  int first, last;
};

// Writes the sources of a block to `out` (room for kMaxRows), and returns their number.
int sources(const Block& block, Source* out);

// Returns whether the forces of a block depend on D. Those of dry friction at its limit do not.
bool depends_on_diagonal(const Block& block);

// Returns the derivative of the force of row r of an active block with respect to log D, at fixed
// acceleration. Adhesion adds R adhesion to the reference acceleration, which changes with D, too.
double force_by_log_stiffness(const DataView& d, const Block& block, int r);

// The part of d log D that comes from the exact diagonal, for the rows first .. last-1 of a block.
// It depends on all dofs of the component.
struct DiagonalChange {
  int first, last;
  const double* dlogD;  // (nv)
};

// Writes the changes of an active block with dofs to `out` (room for kMaxRows), and returns their
// number.
int diagonal_change(const ModelView& m, const DataView& d, const Topology& tree,
                    const Blocks& blocks, const Block& block, const DofRows& residual,
                    DiagonalChange* out, Arena& arena);

// Adds J^T df/dlogD dlogD for the part of D that comes from the exact diagonal. (ROW-11)
void add_exact_diagonal(const ModelView& m, const DataView& d, const Topology& tree,
                        const Blocks& blocks, const DofRows& residual, Arena& arena);

}  // namespace mujacobian

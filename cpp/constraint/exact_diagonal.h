// The flag diagexact: R is scaled by the exact diagonal J M^-1 J^T, which moves with q.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// The row whose diagonal scales R of the rows first .. last-1: each its own, except that all rows
// of a contact are tied to its first one, which for a pyramid is an edge.
struct Source {
  double weight[kMaxRows];  // of the block's rows
  int first, last;
};

// Fill `out` (room for kMaxRows); returns how many there are.
int sources(const Block& block, Source* out);

// The part of d log D that comes from the exact diagonal, shared by the rows first .. last-1 of a
// block. It reaches all dofs of the component.
struct DiagonalChange {
  int first, last;
  const double* dlogD;  // (nv)
};

// Fill `out` (room for kMaxRows) for an active block that moves dofs; returns how many there are.
int diagonal_change(const ModelView& m, const DataView& d, const Topology& tree,
                    const Blocks& blocks, const Block& block, const DofRows& residual,
                    DiagonalChange* out, Arena& arena);

// Add J^T (f dlogD) for the part of D that comes from the exact diagonal.               (ROW-11)
void add_exact_diagonal(const ModelView& m, const DataView& d, const Topology& tree,
                        const Blocks& blocks, const DofRows& residual, Arena& arena);

}  // namespace mujacobian

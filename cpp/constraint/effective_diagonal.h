// The discrete integrator corrects R of every row by what its metric does to the diagonal of M.
#pragma once

#include "constraint/exact_diagonal.h"

namespace mujacobian {

// d(M_jj) and d(what the metric adds to it), row j for every dof j.
struct DiagonalRates {
  DofRows inertia, added;
};

// What the correction does to the forces of a block at fixed acceleration: the force of row r
// changes by force[r] dlogR.
struct EffectiveChange {
  double force[kMaxRows];
  const double* dlogR;  // over the columns of the block's component, before those of applied force
};

// Fill `out` (room for kMaxRows) for a block; returns how many there are.                   (DIS-8)
int effective_change(const ModelView& m, const DataView& d, const Blocks& blocks,
                     const Block& block, const DiagonalRates& diagonal, EffectiveChange* out,
                     Arena& arena);

// dlogR of the rows of a source when the block's Jacobian changes by dJ, (count, n) with its
// stride.
double effective_change(const ModelView& m, const DataView& d, const Block& block,
                        const Source& source, const double* dJ, Arena& arena);

// Add J^T (f dlogD) for the part of D that comes from the correction.
void add_effective_diagonal(const ModelView& m, const DataView& d, const Blocks& blocks,
                            const DiagonalRates& diagonal, const DofRows& residual, Arena& arena);

// The same for one change, of M_jj by `inertia` and of what the metric adds to it by `added`.
void add_effective_diagonal(const ModelView& m, const DataView& d, const Blocks& blocks,
                            const double* inertia, const double* added, double* column,
                            Arena& arena);

}  // namespace mujacobian

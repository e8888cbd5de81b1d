// The discrete integrator corrects the regularization R of every row, because its metric changes
// the diagonal of M.
#pragma once

#include "constraint/exact_diagonal.h"

namespace mujacobian {

// Derivatives of M_jj and of s_j, the part that the metric adds to M_jj: row j for every dof j.
struct DiagonalRates {
  DofRows inertia, added;
};

// The effect of the correction on the forces of a block at fixed acceleration: the force of row r
// changes by force[r] dlogR.
struct EffectiveChange {
  double force[kMaxRows];
  const double* dlogR;  // over the columns of the component of the block, without applied forces
};

// Writes the changes of a block to `out` (room for kMaxRows), and returns their number.     (DIS-8)
int effective_change(const ModelView& m, const DataView& d, const Blocks& blocks,
                     const Block& block, const DiagonalRates& diagonal, EffectiveChange* out,
                     Arena& arena);

// Returns dlogR of the rows of a source if the Jacobian of the block changes by dJ, (count, n) with
// the stride of the block.
double effective_change(const ModelView& m, const DataView& d, const Block& block,
                        const Source& source, const double* dJ, Arena& arena);

// Adds J^T (f dlogD) for the part of D that comes from the correction.
void add_effective_diagonal(const ModelView& m, const DataView& d, const Blocks& blocks,
                            const DiagonalRates& diagonal, const DofRows& residual, Arena& arena);

// The same for one change, of M_jj by `inertia` and of s_j by `added`.
void add_effective_diagonal(const ModelView& m, const DataView& d, const Blocks& blocks,
                            const double* inertia, const double* added, double* column,
                            Arena& arena);

}  // namespace mujacobian

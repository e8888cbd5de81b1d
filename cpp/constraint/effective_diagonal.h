// The discrete integrator corrects R of every row by what its metric does to the diagonal of M.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// d(M_jj) and d(what the metric adds to it), row j for every dof j.
struct DiagonalRates {
  Residual inertia, added;
};

// Add J^T (f dlogD) for the part of D that comes from the correction.                      (DIS-8)
void add_effective_diagonal(const ModelView& m, const DataView& d, const Blocks& blocks,
                            const DiagonalRates& diagonal, const Residual& residual, Arena& arena);

}  // namespace mujacobian

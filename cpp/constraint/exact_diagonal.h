// The flag diagexact: R is scaled by the exact diagonal J M^-1 J^T, which moves with q.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Add J^T (f dlogD) for the part of D that comes from the exact diagonal.               (ROW-11)
void add_exact_diagonal(const ModelView& m, const DataView& d, const Topology& tree,
                        const Blocks& blocks, const Residual& residual, Arena& arena);

}  // namespace mujacobian

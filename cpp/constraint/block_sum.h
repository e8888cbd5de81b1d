// Sums of matrices over the dofs of constraint blocks.
#pragma once

#include <algorithm>
#include <cstring>

#include "constraint/block.h"

namespace mujacobian {

// Returns the size of a matrix (n, n) with the stride of the block.
inline std::size_t matrix_size(const Block& b) { return static_cast<std::size_t>(b.n) * b.stride; }

// Returns the largest size of all blocks.
inline std::size_t largest_matrix(const Blocks& blocks) {
  std::size_t size = 0;
  for (int k = 0; k < blocks.count; k++) size = std::max(size, matrix_size(blocks.block[k]));
  return size;
}

// Sums matrices over the dofs of blocks. Consecutive blocks with the same dofs, such as contacts
// between the same bodies, share one sum of `matrices` (n, n) matrices with the stride of the
// block. The function calls add(block, sum) for each active block, and scatter(block, sum) after
// the last block of each sum.
template <class Add, class Scatter>
void sum_by_dofs(const Blocks& blocks, int matrices, double* sum, Add add, Scatter scatter) {
  const Block* last = nullptr;
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.active || b.n == 0) continue;
    const bool same =
        last && last->n == b.n && std::memcmp(last->dofs, b.dofs, b.n * sizeof(int)) == 0;
    if (!same) {
      if (last) scatter(*last, sum);
      std::memset(sum, 0, matrices * matrix_size(b) * sizeof(double));
    }
    add(b, sum);
    last = &b;
  }
  if (last) scatter(*last, sum);
}

}  // namespace mujacobian

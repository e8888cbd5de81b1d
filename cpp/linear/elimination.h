// Cholesky factorization by blocks of rows: of a matrix most of whose blocks are zero, such as the
// K of a heap, where every body touches a few others. docs/derivations/constraints.md, (SOL-1).
#pragma once

#include "layout/arena.h"

namespace mujacobian {

// A column of blocks of L, in order of elimination.
struct BlockColumn {
  int first, size;  // its rows, in the order of the caller
  int stride;       // `size` in whole lanes
  int below_count;  // blocks under the diagonal
  int* below;       // their places in the order of elimination, increasing
  int* offset;      // their first rows in the panel
  double* panel;    // the diagonal block, then those below; rows padded with zeros
  // the same blocks by rows: what is left of the diagonal
  int left_count;
  int* left;             // columns
  const double** lefts;  // the blocks
};

class Elimination {
 public:
  // A plan for `count` blocks of rows; `touching` (count, count) says which blocks below the
  // diagonal are not zero, and is overwritten. The order is one of least degree.
  Elimination(int count, const int* sizes, bool* touching, Arena& arena);

  // Number of entries of L, in whole blocks: what a solve costs per right-hand side.
  std::size_t entries() const { return entries_; }

  // Take the memory of the factor.
  void allocate(Arena& arena);

  // Set K to zero, and add to its blocks: entry (i, j) of block (row, column), or of its mirror
  // image, is at [i * row_step + j * column_step]. Of diagonal blocks only i >= j is read.
  void clear();
  struct Place {
    double* entry;
    int row_step, column_step;
  };
  Place block(int row, int column) const;

  // False if K is not positive definite.
  bool factor();

  // Columns first .. last-1 of all rows, in place: x <- K^-1 x
  void solve(double* x, int row_stride, int first, int last) const;

 private:
  void plan_rows(Arena& arena);

  int count_;
  BlockColumn* columns_;
  int* place_;     // of each block in the order of elimination
  int* row_of_;    // scratch of the factorization: where blocks are in the panel being updated
  bool* reached_;  // scratch of the solve: blocks that are not zero
  std::size_t entries_;
};

}  // namespace mujacobian

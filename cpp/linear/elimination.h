// Sparse Cholesky factorization by blocks of rows, for matrices in which most blocks are zero. An
// example is the K of a heap of bodies, where every body touches only a few others.
// docs/derivations/constraints.md, (SOL-1).
#pragma once

#include "layout/arena.h"

namespace mujacobian {

// A column of blocks of L. Columns are numbered in the order of elimination.
struct BlockColumn {
  int first, size;  // rows of the diagonal block, in the order of the caller
  int stride;       // `size` rounded up to whole lanes
  int below_count;  // number of blocks below the diagonal
  int* below;       // their columns, increasing
  int* offset;      // their first rows in the panel
  double* panel;    // the diagonal block, then the blocks below it; rows are padded with zeros
  // the blocks of the same row of L, left of the diagonal
  int left_count;
  int* left;             // their columns
  const double** lefts;  // their entries
};

class Elimination {
 public:
  // Plans the elimination of `count` blocks of rows, in minimum-degree order. `touching`
  // (count, count) says which blocks below the diagonal are not zero, and is overwritten.
  Elimination(int count, const int* sizes, bool* touching, Arena& arena);

  // Returns the number of entries of L in whole blocks, the cost of a solve per right-hand side.
  std::size_t entries() const { return entries_; }

  // Takes the memory of the factor.
  void allocate(Arena& arena);

  // Sets K to zero.
  void clear();

  // Returns where to write block (row, column) of K, which may be above the diagonal: entry (i, j)
  // is at entry[i * row_step + j * column_step]. Only i >= j is read of diagonal blocks.
  struct Place {
    double* entry;
    int row_step, column_step;
  };
  Place block(int row, int column) const;

  // Replaces K by its factor. Returns false if K is not positive definite.
  bool factor();

  // x <- K^-1 x, in place, for columns first .. last-1 of all rows.
  void solve(double* x, int row_stride, int first, int last) const;

 private:
  void plan_rows(Arena& arena);

  int count_;
  BlockColumn* columns_;
  int* place_;     // place of each block in the order of elimination
  int* row_of_;    // scratch of the factorization: rows of blocks in the panel that is updated
  bool* reached_;  // scratch of the solve: blocks of the right-hand side that are not zero
  std::size_t entries_;
};

}  // namespace mujacobian

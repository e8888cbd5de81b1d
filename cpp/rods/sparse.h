// Sparse symmetric matrices of 3x3 blocks, and their factorization. For chains in their natural
// order, and for nets in an order of small degree, the factor has few more blocks than the matrix.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "spatial/vector.h"

namespace mujacobian::rods {

// Rows are eliminated in an order that is chosen for the pattern, and are kept in this order, with
// all blocks that their factor has.
class SparseMatrix {
 public:
  // `couplings` are pairs of rows that have a block; diagonal blocks always exist.
  SparseMatrix(int rows, const std::vector<std::pair<int, int>>& couplings);

  void clear();
  // Add a block at (row, column) and its transpose at (column, row); add a diagonal block once.
  void add(int row, int column, const Mat3& block);
  // Returns whether there is a block at (row, column)
  bool has(int row, int column) const;
  // Write bounds of the rounding errors of A x per row, where x is rounded: the positions of
  // points, and rotations, whose entries are at most one.
  void bound(const std::vector<Vec3>& positions, const std::vector<int>& rows,
             std::vector<Vec3>& bounds) const;
  // y = A x
  void multiply(const std::vector<Vec3>& x, std::vector<Vec3>& y) const;
  // Call visit(row, column, block) for each block of the lower triangle, in the order of
  // elimination, where the diagonal block is the last one of its row
  template <class Visit>
  void for_each(Visit visit) const {
    for (int i = 0; i < rows(); i++) {
      for (std::ptrdiff_t e = start_[i]; e < start_[i + 1]; e++) {
        visit(row_at_[i], row_at_[column_[e]], blocks_[e]);
      }
    }
  }

  int rows() const { return static_cast<int>(place_.size()); }
  std::ptrdiff_t blocks() const { return static_cast<std::ptrdiff_t>(blocks_.size()); }

 private:
  friend class Factor;
  // Returns the index of the block at these places, high >= low, or -1
  std::ptrdiff_t find(int high, int low) const;

  std::vector<int> place_, row_at_;    // place of each row in the elimination, and its inverse
  std::vector<std::ptrdiff_t> start_;  // of each place
  std::vector<int> column_;            // places of the columns, increasing, the diagonal last
  std::vector<Mat3> blocks_;
};

// Factorization L D L^T with 3x3 blocks D.
class Factor {
 public:
  explicit Factor(const SparseMatrix& pattern);

  // Factor the rows and columns that are not fixed. Each diagonal block is shifted by `shift` times
  // its largest diagonal entry. Returns whether the matrix is positive definite. If `anyway` is
  // false, the factorization ends at the first pivot that is not positive definite.
  bool compute(const SparseMatrix& a, const std::vector<char>& fixed, double shift, bool anyway);
  // Returns whether the last factorization had a pivot that is zero or not finite.
  bool singular() const { return singular_; }
  // b = A^-1 b, and zero in fixed rows.
  void solve(std::vector<Vec3>& b) const;

 private:
  // factors of a diagonal block C diag(1/inverse) C^T, where C is unit lower triangular
  struct Pivot {
    double c10, c20, c21;
    double inverse[3];
    Vec3 solve(Vec3 b) const;
  };
  // A block of a column of L
  struct Below {
    int place;             // of its row
    std::ptrdiff_t index;  // of the block
  };
  // Factor a diagonal block. Returns whether it is positive definite.
  bool pivot(const Mat3& a, Pivot& p);

  const SparseMatrix& pattern_;
  std::vector<std::ptrdiff_t> first_below_;  // of each column
  std::vector<Below> below_;                 // below the diagonal, by column
  std::vector<Mat3> lower_;
  std::vector<Pivot> pivots_;          // by place
  std::vector<std::ptrdiff_t> where_;  // index of the block of the current row, by place
  std::vector<char> fixed_;            // by place
  bool singular_ = false;
};

}  // namespace mujacobian::rods

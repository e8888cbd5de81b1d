// Symmetric matrices of 3x3 blocks with a variable band: a row begins at its first nonzero block.
// For chains in their natural order, the cost of the factorization is linear in the number of
// blocks.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "spatial/vector.h"

namespace mujacobian::rods {

class Skyline {
 public:
  // `couplings` are pairs of rows that have a block; diagonal blocks always exist.
  Skyline(int rows, const std::vector<std::pair<int, int>>& couplings);

  void clear();
  // Add a block at (row, column) and its transpose at (column, row); add a diagonal block once.
  void add(int row, int column, const Mat3& block);
  // Write bounds of the rounding errors of A x per row, where x is rounded: the positions of
  // points, and rotations, whose entries are at most one.
  void bound(const std::vector<Vec3>& positions, const std::vector<int>& rows,
             std::vector<Vec3>& bounds) const;
  // y = A x
  void multiply(const std::vector<Vec3>& x, std::vector<Vec3>& y) const;

  int rows() const { return static_cast<int>(first_.size()); }
  std::ptrdiff_t blocks() const { return static_cast<std::ptrdiff_t>(blocks_.size()); }
  bool has(int row, int column) const {
    return first_[row > column ? row : column] <= (row > column ? column : row);
  }
  int first(int row) const { return first_[row]; }
  const Mat3& at(int row, int column) const { return blocks_[start_[row] + column - first_[row]]; }

 private:
  friend class Factor;
  std::vector<int> first_;
  std::vector<std::ptrdiff_t> start_;
  std::vector<Mat3> blocks_;
};

// Factorization L D L^T with 3x3 blocks D.
class Factor {
 public:
  explicit Factor(const Skyline& pattern);

  // Factor the rows and columns that are not fixed. Each diagonal block is shifted by `shift` times
  // its largest diagonal entry. Returns whether the matrix is positive definite. If `anyway` is
  // false, the factorization ends at the first pivot that is not positive definite.
  bool compute(const Skyline& a, const std::vector<char>& fixed, double shift, bool anyway);
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
  // Factor a diagonal block. Returns whether it is positive definite.
  bool pivot(const Mat3& a, Pivot& p);

  const Skyline& pattern_;
  std::vector<Mat3> lower_;
  std::vector<Pivot> pivots_;
  std::vector<Mat3> scratch_;  // L D of the current row
  std::vector<char> fixed_;
  bool singular_ = false;
};

}  // namespace mujacobian::rods

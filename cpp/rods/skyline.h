// Symmetric matrices of 3x3 blocks whose rows begin at their first block that is not zero, and
// their factorization. Its cost is linear in the number of blocks for chains in their natural
// order.
#pragma once

#include <vector>

#include "spatial/vector.h"

namespace mujacobian::rods {

class Skyline {
 public:
  // `couplings`: pairs of rows that have a block; diagonal blocks are always there
  Skyline(int rows, const std::vector<std::pair<int, int>>& couplings);

  void clear();
  // Add the derivative with respect to block variables (row, column), and its transpose at (column,
  // row); a diagonal block is added once.
  void add(int row, int column, const Mat3& block);
  // y = A x
  void multiply(const std::vector<Vec3>& x, std::vector<Vec3>& y) const;

  int rows() const { return static_cast<int>(first_.size()); }
  long blocks() const { return static_cast<long>(blocks_.size()); }
  int first(int row) const { return first_[row]; }
  const Mat3& at(int row, int column) const { return blocks_[start_[row] + column - first_[row]]; }

 private:
  friend class Factor;
  std::vector<int> first_;
  std::vector<long> start_;
  std::vector<Mat3> blocks_;
};

// L D L^T with blocks D of three rows.
class Factor {
 public:
  explicit Factor(const Skyline& pattern);

  // Factor the matrix in the rows that are not fixed, with `shift` times the largest diagonal entry
  // of each block added to its diagonal. Returns whether it is positive definite; if `anyway` is
  // false, the factorization ends at the first pivot that is not positive.
  bool compute(const Skyline& a, const std::vector<char>& fixed, double shift, bool anyway);
  // Whether the last factorization met a pivot that is zero or not finite.
  bool singular() const { return singular_; }
  // b = A^-1 b; zero in fixed rows
  void solve(std::vector<Vec3>& b) const;

 private:
  // a diagonal block C diag(1/inverse) C^T, with C unit lower triangular
  struct Pivot {
    double c10, c20, c21;
    double inverse[3];
    Vec3 solve(Vec3 b) const;
  };
  bool pivot(const Mat3& a, Pivot& p);

  const Skyline& pattern_;
  std::vector<Mat3> lower_;
  std::vector<Pivot> pivots_;
  std::vector<Mat3> scratch_;  // L D of the row at hand
  std::vector<char> fixed_;
  bool singular_ = false;
};

}  // namespace mujacobian::rods

#include "rods/skyline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rods/algebra.h"

namespace mujacobian::rods {

Skyline::Skyline(int rows, const std::vector<std::pair<int, int>>& couplings)
    : first_(rows), start_(rows) {
  for (int i = 0; i < rows; i++) first_[i] = i;
  for (auto [i, j] : couplings) {
    int low = std::min(i, j), high = std::max(i, j);
    first_[high] = std::min(first_[high], low);
  }
  std::ptrdiff_t size = 0;
  for (int i = 0; i < rows; i++) {
    start_[i] = size;
    size += i - first_[i] + 1;
  }
  blocks_.resize(size);
}

void Skyline::clear() { std::fill(blocks_.begin(), blocks_.end(), Mat3{}); }

void Skyline::add(int row, int column, const Mat3& block) {
  bool upper = row < column;
  int high = upper ? column : row, low = upper ? row : column;
  Mat3& place = blocks_[start_[high] + low - first_[high]];
  if (upper) {
    for (int r = 0; r < 3; r++)
      for (int c = 0; c < 3; c++) place.m[3 * r + c] += block.m[3 * c + r];
  } else {
    for (int i = 0; i < 9; i++) place.m[i] += block.m[i];
  }
}

void Skyline::bound(const std::vector<Vec3>& positions, const std::vector<int>& rows,
                    std::vector<Vec3>& bounds) const {
  constexpr double kUnit = std::numeric_limits<double>::epsilon();
  std::vector<double> size(first_.size(), kUnit);
  for (size_t i = 0; i < positions.size(); i++) {
    const Vec3 x = positions[i];
    size[rows[i]] = kUnit * std::max({std::abs(x.x), std::abs(x.y), std::abs(x.z)});
  }
  // absolute values of a row of a block, times the size of the unknowns of its columns
  auto add = [](const Mat3& block, bool transpose, double scale, Vec3& sum) {
    double total[3] = {};
    for (int k = 0; k < 9; k++) total[transpose ? k % 3 : k / 3] += scale * std::abs(block.m[k]);
    sum += load3(total);
  };
  std::fill(bounds.begin(), bounds.end(), Vec3{});
  for (int i = 0; i < this->rows(); i++) {
    for (int j = first_[i]; j <= i; j++) {
      add(at(i, j), false, size[j], bounds[i]);
      if (j < i) add(at(i, j), true, size[i], bounds[j]);
    }
  }
}

void Skyline::multiply(const std::vector<Vec3>& x, std::vector<Vec3>& y) const {
  std::fill(y.begin(), y.end(), Vec3{});
  for (int i = 0; i < rows(); i++) {
    for (int j = first_[i]; j < i; j++) {
      const Mat3& block = at(i, j);
      y[i] += block * x[j];
      y[j] += transpose_mul(block, x[i]);
    }
    y[i] += at(i, i) * x[i];
  }
}

Factor::Factor(const Skyline& pattern)
    : pattern_(pattern),
      lower_(pattern.blocks_.size()),
      pivots_(pattern.rows()),
      scratch_(pattern.rows()),
      fixed_(pattern.rows()) {}

Vec3 Factor::Pivot::solve(Vec3 b) const {
  double y1 = b.y - c10 * b.x, y2 = b.z - c20 * b.x - c21 * y1;
  double x2 = y2 * inverse[2], x1 = y1 * inverse[1] - c21 * x2;
  return {b.x * inverse[0] - c10 * x1 - c20 * x2, x1, x2};
}

bool Factor::pivot(const Mat3& a, Pivot& p) {
  double d[3], *inverse = p.inverse;
  d[0] = a(0, 0), inverse[0] = 1 / d[0];
  p.c10 = a(1, 0) * inverse[0], p.c20 = a(2, 0) * inverse[0];
  d[1] = a(1, 1) - p.c10 * a(1, 0), inverse[1] = 1 / d[1];
  double l21 = a(2, 1) - p.c20 * a(1, 0);
  p.c21 = l21 * inverse[1];
  d[2] = a(2, 2) - p.c20 * a(2, 0) - p.c21 * l21, inverse[2] = 1 / d[2];
  for (double each : d) singular_ |= !(std::isfinite(each) && each != 0);
  return d[0] > 0 && d[1] > 0 && d[2] > 0;
}

bool Factor::compute(const Skyline& a, const std::vector<char>& fixed, double shift, bool anyway) {
  fixed_ = fixed;
  singular_ = false;
  bool positive = true;
  for (int i = 0; i < a.rows(); i++) {
    if (fixed[i]) continue;
    const int begin = a.first_[i];
    const std::ptrdiff_t row = a.start_[i] - begin;  // block (i, j) is at row + j
    // shifted diagonal block
    Mat3 diagonal = a.at(i, i);
    if (shift > 0) {
      double largest =
          std::max({std::abs(diagonal(0, 0)), std::abs(diagonal(1, 1)), std::abs(diagonal(2, 2))});
      diagonal = diagonal + scaled_identity(shift * largest);
    }
    // row i of L, and the Schur complement of the diagonal block
    for (int j = begin; j < i; j++) {
      if (fixed[j]) continue;
      Mat3 u = a.at(i, j);  // L_ij D_j
      const std::ptrdiff_t other = a.start_[j] - a.first_[j];
      for (int k = std::max(begin, a.first_[j]); k < j; k++) {
        if (!fixed[k]) u = difference(u, times_transposed(scratch_[k], lower_[other + k]));
      }
      scratch_[j] = u;
      Mat3& l = lower_[row + j];
      for (int r = 0; r < 3; r++) store3(&l.m[3 * r], pivots_[j].solve(load3(&u.m[3 * r])));
      diagonal = difference(diagonal, times_transposed(u, l));
    }
    positive &= pivot(diagonal, pivots_[i]);
    if (!positive && (!anyway || singular_)) return false;
  }
  return positive;
}

void Factor::solve(std::vector<Vec3>& b) const {
  const int n = pattern_.rows();
  // L y = b
  for (int i = 0; i < n; i++) {
    if (fixed_[i]) {
      b[i] = {};
      continue;
    }
    const std::ptrdiff_t row = pattern_.start_[i] - pattern_.first_[i];
    for (int j = pattern_.first_[i]; j < i; j++) {
      if (!fixed_[j]) b[i] = b[i] - lower_[row + j] * b[j];
    }
  }
  // D z = y
  for (int i = 0; i < n; i++) {
    if (!fixed_[i]) b[i] = pivots_[i].solve(b[i]);
  }
  // L^T x = z
  for (int i = n - 1; i >= 0; i--) {
    if (fixed_[i]) continue;
    const std::ptrdiff_t row = pattern_.start_[i] - pattern_.first_[i];
    for (int j = pattern_.first_[i]; j < i; j++) {
      if (!fixed_[j]) b[j] = b[j] - transpose_mul(lower_[row + j], b[i]);
    }
  }
}

}  // namespace mujacobian::rods

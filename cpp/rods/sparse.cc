#include "rods/sparse.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "rods/algebra.h"
#include "rods/ordering.h"

namespace mujacobian::rods {
namespace {

constexpr double kMuch = 1.25;  // blocks of a factor relative to the matrix: below, no other order
constexpr double kMost = 10;    // the same: above, the natural order is not used
constexpr int kNear = 4;        // blocks of a row among which a search begins

double count(const Rows& rows) {
  std::size_t sum = 0;
  for (const std::vector<int>& row : rows) sum += row.size();
  return static_cast<double>(sum);
}

}  // namespace

SparseMatrix::SparseMatrix(int rows, const std::vector<std::pair<int, int>>& couplings)
    : place_(rows), row_at_(rows) {
  const Rows adjacent = adjacency(rows, couplings);
  const double own = 0.5 * count(adjacent);
  // the natural order, unless it has much fill and another one has less
  std::iota(place_.begin(), place_.end(), 0);
  Rows natural = factor_rows(adjacent, place_, static_cast<std::size_t>(kMost * own));
  if (natural.empty() || count(natural) > kMuch * own) {
    std::vector<int> place = minimum_degree(adjacent);
    Rows other = factor_rows(adjacent, place, std::numeric_limits<std::size_t>::max());
    if (natural.empty() || count(other) < count(natural)) {
      place_ = std::move(place);
      natural = std::move(other);
    }
  }
  for (int i = 0; i < rows; i++) row_at_[place_[i]] = i;
  start_.push_back(0);
  for (int i = 0; i < rows; i++) {
    column_.insert(column_.end(), natural[i].begin(), natural[i].end());
    column_.push_back(i);
    start_.push_back(static_cast<std::ptrdiff_t>(column_.size()));
  }
  blocks_.resize(column_.size());
}

std::ptrdiff_t SparseMatrix::find(int high, int low) const {
  // most rows are short, and blocks near the diagonal are the most frequent ones
  std::ptrdiff_t e = start_[high + 1] - 1;
  for (int k = 0; k < kNear; k++, e--) {
    if (e < start_[high]) return -1;
    if (column_[e] == low) return e;
  }
  const auto begin = column_.begin() + start_[high], end = column_.begin() + e + 1;
  const auto found = std::lower_bound(begin, end, low);
  return found == end || *found != low ? -1 : found - column_.begin();
}

bool SparseMatrix::has(int row, int column) const {
  const auto [low, high] = std::minmax(place_[row], place_[column]);
  return find(high, low) >= 0;
}

void SparseMatrix::clear() { std::fill(blocks_.begin(), blocks_.end(), Mat3{}); }

void SparseMatrix::add(int row, int column, const Mat3& block) {
  const int r = place_[row], c = place_[column];
  const bool upper = r < c;
  Mat3& place = blocks_[upper ? find(c, r) : find(r, c)];
  if (upper) {
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) place.m[3 * i + j] += block.m[3 * j + i];
  } else {
    for (int i = 0; i < 9; i++) place.m[i] += block.m[i];
  }
}

void SparseMatrix::bound(const std::vector<Vec3>& positions, const std::vector<int>& rows,
                         std::vector<Vec3>& bounds) const {
  constexpr double kUnit = std::numeric_limits<double>::epsilon();
  std::vector<double> size(place_.size(), kUnit);
  for (size_t i = 0; i < positions.size(); i++) {
    const Vec3 x = positions[i];
    size[rows[i]] = kUnit * std::max({std::abs(x.x), std::abs(x.y), std::abs(x.z)});
  }
  // absolute values of a row of a block, times the size of the unknowns of its columns
  auto add_row_sums = [](const Mat3& block, bool transpose, double scale, Vec3& sum) {
    double total[3] = {};
    for (int k = 0; k < 9; k++) total[transpose ? k % 3 : k / 3] += scale * std::abs(block.m[k]);
    sum += load3(total);
  };
  std::fill(bounds.begin(), bounds.end(), Vec3{});
  for_each([&](int i, int j, const Mat3& block) {
    add_row_sums(block, false, size[j], bounds[i]);
    if (j != i) add_row_sums(block, true, size[i], bounds[j]);
  });
}

void SparseMatrix::multiply(const std::vector<Vec3>& x, std::vector<Vec3>& y) const {
  std::fill(y.begin(), y.end(), Vec3{});
  for_each([&](int i, int j, const Mat3& block) {
    y[i] += block * x[j];
    if (j != i) y[j] += transpose_mul(block, x[i]);
  });
}

Factor::Factor(const SparseMatrix& pattern)
    : pattern_(pattern),
      lower_(pattern.blocks_.size()),
      pivots_(pattern.rows()),
      where_(pattern.rows()),
      fixed_(pattern.rows()) {
  // the blocks of each column, from those of the rows
  const int n = pattern.rows();
  first_below_.assign(n + 1, 0);
  auto for_each = [&](auto visit) {
    for (int i = 0; i < n; i++) {
      for (std::ptrdiff_t e = pattern.start_[i]; e + 1 < pattern.start_[i + 1]; e++) visit(i, e);
    }
  };
  for_each([&](int, std::ptrdiff_t e) { first_below_[pattern.column_[e] + 1]++; });
  std::partial_sum(first_below_.begin(), first_below_.end(), first_below_.begin());
  below_.resize(first_below_[n]);
  std::vector<std::ptrdiff_t> next(first_below_.begin(), first_below_.end() - 1);
  for_each([&](int i, std::ptrdiff_t e) { below_[next[pattern.column_[e]]++] = {i, e}; });
}

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

bool Factor::compute(const SparseMatrix& a, const std::vector<char>& fixed, double shift,
                     bool anyway) {
  for (int i = 0; i < a.rows(); i++) fixed_[i] = fixed[a.row_at_[i]];
  singular_ = false;
  bool positive = true;
  for (int i = 0; i < a.rows(); i++) {
    if (fixed_[i]) continue;
    const std::ptrdiff_t begin = a.start_[i], last = a.start_[i + 1] - 1;
    // shifted diagonal block
    Mat3 diagonal = a.blocks_[last];
    if (shift > 0) {
      double largest =
          std::max({std::abs(diagonal(0, 0)), std::abs(diagonal(1, 1)), std::abs(diagonal(2, 2))});
      diagonal = diagonal + scaled_identity(shift * largest);
    }
    // row i of L, and the Schur complement of the diagonal block
    for (std::ptrdiff_t e = begin; e < last; e++) where_[a.column_[e]] = e;
    for (std::ptrdiff_t e = begin; e < last; e++) lower_[e] = a.blocks_[e];
    for (std::ptrdiff_t e = begin; e < last; e++) {
      const int j = a.column_[e];
      if (fixed_[j]) continue;
      Mat3& l = lower_[e];
      const Mat3 u = l;  // L_ij D_j
      for (std::ptrdiff_t k = first_below_[j]; below_[k].place < i; k++) {
        Mat3& other = lower_[where_[below_[k].place]];
        other = difference(other, times_transposed(u, lower_[below_[k].index]));
      }
      for (int r = 0; r < 3; r++) store3(&l.m[3 * r], pivots_[j].solve(load3(&u.m[3 * r])));
      diagonal = difference(diagonal, times_transposed(u, l));
    }
    positive &= pivot(diagonal, pivots_[i]);
    if (!positive && (!anyway || singular_)) return false;
  }
  return positive;
}

void Factor::solve(std::vector<Vec3>& b) const {
  const SparseMatrix& a = pattern_;
  const int n = a.rows();
  // call visit(x_i, L_ij, x_j) for the blocks of row i
  auto for_row = [&](int i, auto visit) {
    for (std::ptrdiff_t e = a.start_[i]; e + 1 < a.start_[i + 1]; e++) {
      const int j = a.column_[e];
      if (!fixed_[j]) visit(b[a.row_at_[i]], lower_[e], b[a.row_at_[j]]);
    }
  };
  // L y = b
  for (int i = 0; i < n; i++) {
    if (fixed_[i]) {
      b[a.row_at_[i]] = {};
    } else {
      for_row(i, [](Vec3& x, const Mat3& l, const Vec3& other) { x = x - l * other; });
    }
  }
  // D z = y
  for (int i = 0; i < n; i++) {
    Vec3& x = b[a.row_at_[i]];
    if (!fixed_[i]) x = pivots_[i].solve(x);
  }
  // L^T x = z
  for (int i = n - 1; i >= 0; i--) {
    if (fixed_[i]) continue;
    for_row(i,
            [](const Vec3& x, const Mat3& l, Vec3& other) { other = other - transpose_mul(l, x); });
  }
}

}  // namespace mujacobian::rods

#include "linear/elimination.h"

#include <cmath>

#include "linear/cholesky.h"
#include "linear/lanes.h"

namespace mujacobian {
namespace {

constexpr int kTile = 6;  // lanes: two rows of them fill the registers

// Returns the number of rows of the panel of column c.
int height(const BlockColumn* columns, const BlockColumn& c) {
  if (c.below_count == 0) return c.size;
  int last = c.below_count - 1;
  return c.offset[last] + columns[c.below[last]].size;
}

// Factors the diagonal block of a panel, then solves for the blocks below it: P <- P L^-T. Returns
// false if the diagonal block is not positive definite.
bool factor_panel(const BlockColumn& c, int rows) {
  if (!factor_dense(c.panel, c.size, c.stride)) return false;
  for (int r = c.size; r < rows; r++) {
    double* row = c.panel + r * c.stride;
    for (int j = 0; j < c.size; j++) {
      const double* l = c.panel + j * c.stride;
      double sum = row[j];
      for (int k = 0; k < j; k++) sum -= row[k] * l[k];
      row[j] = sum * l[j];
    }
  }
  return true;
}

// out -= a b^T for rows of `stride` entries, a multiple of four
void subtract_product(const double* a, int a_rows, const double* b, int b_rows, int stride,
                      double* out, int out_stride) {
  for (int i = 0; i < a_rows; i++)
    for (int j = 0; j < b_rows; j++) {
      Lanes sum{};
      for (int k = 0; k < stride; k += kLanes) {
        sum += load_lanes(a + i * stride + k) * load_lanes(b + j * stride + k);
      }
      out[i * out_stride + j] -= sum[0] + sum[1] + sum[2] + sum[3];
    }
}

// x_r -= sum_j a_rj y_j for `rows` rows of x at once, so that each y is loaded only once.
template <int rows, int tile>
inline void subtract_rows(Lanes x[rows][tile], const double* a, int row_step, int column_step,
                          int n, const double* y, int y_stride) {
  for (int j = 0; j < n; j++, a += column_step, y += y_stride) {
    Lanes factor[rows];
    for (int r = 0; r < rows; r++) factor[r] = broadcast(a[r * row_step]);
    for (int c = 0; c < tile; c++) {
      Lanes value = load_lanes(y + kLanes * c);
      for (int r = 0; r < rows; r++) x[r][c] -= factor[r] * value;
    }
  }
}

template <int tile>
inline void load_rows(const double* from, Lanes to[tile]) {
  for (int c = 0; c < tile; c++) to[c] = load_lanes(from + kLanes * c);
}

template <int tile>
inline void store_scaled(double* to, const Lanes from[tile], double scale) {
  Lanes factor = broadcast(scale);
  for (int c = 0; c < tile; c++) store_lanes(to + kLanes * c, factor * from[c]);
}

// The forward and the backward substitution for a tile of right-hand sides. A right-hand side often
// acts on one body and its neighbors only, so the forward substitution skips blocks of zeros.
template <int tile>
class Sweep {
 public:
  Sweep(const BlockColumn* columns, int count, double* x, std::ptrdiff_t stride, bool* reached)
      : columns_(columns), count_(count), x_(x), stride_(stride), reached_(reached) {}

  void run() const {
    // L y = b, for blocks that are not zero or that such a block reaches
    for (int k = 0; k < count_; k++) {
      const BlockColumn& c = columns_[k];
      reached_[k] = !is_zero(c);
      for (int b = 0; b < c.left_count && !reached_[k]; b++) reached_[k] = reached_[c.left[b]];
      if (!reached_[k]) continue;
      int r = 0;
      for (; r + 2 <= c.size; r += 2) forward<2>(c, r);
      if (r < c.size) forward<1>(c, r);
    }
    // L^T x = y
    for (int k = count_ - 1; k >= 0; k--) {
      const BlockColumn& c = columns_[k];
      int r = c.size;
      for (; r >= 2; r -= 2) backward<2>(c, r - 2);
      if (r) backward<1>(c, 0);
    }
  }

 private:
  double* row(int i) const { return x_ + i * stride_; }

  bool is_zero(const BlockColumn& c) const {
    for (int r = 0; r < c.size; r++) {
      const double* x = row(c.first + r);
      for (int k = 0; k < tile * kLanes; k++) {
        if (x[k] != 0) return false;
      }
    }
    return true;
  }

  // L y = b for rows r .. r + rows - 1 of a block
  template <int rows>
  void forward(const BlockColumn& c, int r) const {
    Lanes sum[rows][tile];
    for (int k = 0; k < rows; k++) load_rows<tile>(row(c.first + r + k), sum[k]);
    for (int b = 0; b < c.left_count; b++) {
      if (!reached_[c.left[b]]) continue;
      const BlockColumn& other = columns_[c.left[b]];
      subtract_rows<rows, tile>(sum, c.lefts[b] + r * other.stride, other.stride, 1, other.size,
                                row(other.first), stride_);
    }
    const double* l = c.panel + r * c.stride;
    subtract_rows<rows, tile>(sum, l, c.stride, 1, r, row(c.first), stride_);
    store_scaled<tile>(row(c.first + r), sum[0], l[r]);
    if constexpr (rows == 2) {
      l += c.stride;
      subtract_rows<1, tile>(sum + 1, l + r, 0, 1, 1, row(c.first + r), stride_);
      store_scaled<tile>(row(c.first + r + 1), sum[1], l[r + 1]);
    }
  }

  // L^T x = y for the same rows
  template <int rows>
  void backward(const BlockColumn& c, int r) const {
    Lanes sum[rows][tile];
    for (int k = 0; k < rows; k++) load_rows<tile>(row(c.first + r + k), sum[k]);
    for (int b = 0; b < c.below_count; b++) {
      const BlockColumn& other = columns_[c.below[b]];
      subtract_rows<rows, tile>(sum, c.panel + c.offset[b] * c.stride + r, 1, c.stride, other.size,
                                row(other.first), stride_);
    }
    const int end = r + rows;
    const double* l = c.panel + end * c.stride + r;
    subtract_rows<rows, tile>(sum, l, 1, c.stride, c.size - end, row(c.first + end), stride_);
    l = c.panel + r * c.stride + r;
    if constexpr (rows == 2) {
      store_scaled<tile>(row(c.first + r + 1), sum[1], l[c.stride + 1]);
      subtract_rows<1, tile>(sum, l + c.stride, 0, 0, 1, row(c.first + r + 1), stride_);
    }
    store_scaled<tile>(row(c.first + r), sum[0], l[0]);
  }

  const BlockColumn* columns_;
  int count_;
  double* x_;
  std::ptrdiff_t stride_;
  bool* reached_;
};

// Lists the blocks that are not eliminated yet and touch block `b`; returns their number.
int neighbors(int count, const bool* touching, const int* place, int b, int* list) {
  int n = 0;
  for (int k = 0; k < count; k++) {
    if (place[k] < 0 && touching[static_cast<std::size_t>(b) * count + k]) list[n++] = k;
  }
  return n;
}

}  // namespace

Elimination::Elimination(int count, const int* sizes, bool* touching, Arena& arena)
    : count_(count), entries_(0) {
  columns_ = arena.take<BlockColumn>(count);
  place_ = arena.take<int>(count);
  row_of_ = arena.take<int>(count);
  reached_ = arena.take<bool>(count);
  int* first = arena.take<int>(count);
  int* degree = arena.zeros<int>(count);
  auto touch = [&](int i, int j) -> bool& {
    return touching[static_cast<std::size_t>(i) * count + j];
  };

  // number the rows, and make `touching` symmetric
  for (int i = 0, row = 0; i < count; i++) {
    place_[i] = -1;
    first[i] = row;
    row += sizes[i];
    touch(i, i) = false;
    for (int j = 0; j < i; j++) touch(j, i) = touch(i, j);
  }

  // degree: number of rows that a block touches
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++) degree[i] += touch(i, j) ? sizes[j] : 0;

  int* around = arena.take<int>(count);
  for (int k = 0; k < count; k++) {
    // choose the block with the smallest degree                                          (SOL-2)
    int b = -1;
    for (int i = 0; i < count; i++) {
      if (place_[i] < 0 && (b < 0 || degree[i] < degree[b])) b = i;
    }
    place_[b] = k;

    // eliminate it: afterwards all of its neighbors touch one another
    int n = neighbors(count, touching, place_, b, around);
    int* below = arena.take<int>(n);
    int rows = sizes[b];
    for (int i = 0; i < n; i++) {
      below[i] = around[i];
      rows += sizes[around[i]];
      degree[around[i]] -= sizes[b];
      for (int j = 0; j < n; j++) {
        if (i == j || touch(around[i], around[j])) continue;
        touch(around[i], around[j]) = true;
        degree[around[i]] += sizes[around[j]];
      }
    }

    // the column of blocks, whose entries `allocate` places
    columns_[k] = {first[b], sizes[b], round_to_lanes(sizes[b]), n, below, nullptr, nullptr, 0,
                   nullptr,  nullptr};
    entries_ += static_cast<std::size_t>(rows) * sizes[b];
  }
}

void Elimination::allocate(Arena& arena) {
  for (int k = 0; k < count_; k++) {
    BlockColumn& c = columns_[k];
    // sort the blocks below the diagonal by their place in the elimination
    for (int i = 0; i < c.below_count; i++) {
      int at = place_[c.below[i]], j = i;
      for (; j > 0 && c.below[j - 1] > at; j--) c.below[j] = c.below[j - 1];
      c.below[j] = at;
    }
    // place them one below the other in the panel
    c.offset = arena.take<int>(c.below_count);
    int rows = c.size;
    for (int i = 0; i < c.below_count; i++) {
      c.offset[i] = rows;
      rows += columns_[c.below[i]].size;
    }
    c.panel = arena.take<double>(static_cast<std::size_t>(rows) * c.stride);
  }
  plan_rows(arena);
}

// Lists the blocks left of the diagonal, from the blocks below it.
void Elimination::plan_rows(Arena& arena) {
  for (int k = 0; k < count_; k++) {
    for (int i = 0; i < columns_[k].below_count; i++) columns_[columns_[k].below[i]].left_count++;
  }
  for (int k = 0; k < count_; k++) {
    BlockColumn& c = columns_[k];
    c.left = arena.take<int>(c.left_count);
    c.lefts = arena.take<const double*>(c.left_count);
    c.left_count = 0;
  }
  for (int k = 0; k < count_; k++) {
    const BlockColumn& c = columns_[k];
    for (int i = 0; i < c.below_count; i++) {
      BlockColumn& r = columns_[c.below[i]];
      r.left[r.left_count] = k;
      r.lefts[r.left_count++] = c.panel + c.offset[i] * c.stride;
    }
  }
}

void Elimination::clear() {
  for (int k = 0; k < count_; k++) {
    const BlockColumn& c = columns_[k];
    std::memset(c.panel, 0, sizeof(double) * height(columns_, c) * c.stride);
  }
}

Elimination::Place Elimination::block(int row, int column) const {
  int r = place_[row], k = place_[column];
  const BlockColumn& c = columns_[r < k ? r : k];
  if (r == k) return {c.panel, c.stride, 1};
  int i = 0;
  while (c.below[i] != (r < k ? k : r)) i++;
  double* entry = c.panel + c.offset[i] * c.stride;
  return r < k ? Place{entry, 1, c.stride} : Place{entry, c.stride, 1};
}

bool Elimination::factor() {
  for (int k = 0; k < count_; k++) {
    const BlockColumn& c = columns_[k];
    if (!factor_panel(c, height(columns_, c))) return false;
    // update the remaining matrix: K_ij -= P_i P_j^T                                     (SOL-1)
    for (int j = 0; j < c.below_count; j++) {
      const BlockColumn& to = columns_[c.below[j]];
      row_of_[c.below[j]] = 0;
      for (int i = 0; i < to.below_count; i++) row_of_[to.below[i]] = to.offset[i];
      for (int i = j; i < c.below_count; i++) {
        subtract_product(c.panel + c.offset[i] * c.stride, columns_[c.below[i]].size,
                         c.panel + c.offset[j] * c.stride, to.size, c.stride,
                         to.panel + row_of_[c.below[i]] * to.stride, to.stride);
      }
    }
  }
  return true;
}

void Elimination::solve(double* x, int row_stride, int first, int last) const {
  visit_tiles(first, last, [&]<int tile>(int c) {
    if constexpr (tile == 2 * kTile) {
      for (int half : {c, c + kTile * kLanes}) {
        Sweep<kTile>(columns_, count_, x + half, row_stride, reached_).run();
      }
    } else {
      Sweep<tile>(columns_, count_, x + c, row_stride, reached_).run();
    }
  });
}

}  // namespace mujacobian

#include "linear/dense.h"

#include <algorithm>
#include <cstddef>

#include "linear/lanes.h"

namespace mujacobian {
namespace {

// Updates `rows` rows and `lanes` lanes of C, which stay in registers during the loop over k.
template <int rows, int lanes>
void tile(double* c, int c_stride, const double* a, int a_stride, const double* b, int b_stride,
          int k) {
  Lanes sum[rows][lanes];
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < lanes; j++) sum[i][j] = load_lanes(c + i * c_stride + j * kLanes);
  }
  for (int step = 0; step < k; step++, a += a_stride, b += b_stride) {
    Lanes right[lanes];
    for (int j = 0; j < lanes; j++) right[j] = load_lanes(b + j * kLanes);
    for (int i = 0; i < rows; i++) {
      const Lanes left = broadcast(a[i]);
      for (int j = 0; j < lanes; j++) sum[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < lanes; j++) store_lanes(c + i * c_stride + j * kLanes, sum[i][j]);
  }
}

// Updates four rows and `lanes` lanes of C with the rows `index` of A and B.
template <int lanes>
void sparse_tile(double* c, int c_stride, const double* a, int a_stride, const double* b,
                 int b_stride, const int* index, int count) {
  Lanes sum[4][lanes];
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < lanes; j++) sum[i][j] = load_lanes(c + i * c_stride + j * kLanes);
  }
  for (int step = 0; step < count; step++) {
    const double* left = a + static_cast<std::ptrdiff_t>(index[step]) * a_stride;
    const double* row = b + static_cast<std::ptrdiff_t>(index[step]) * b_stride;
    Lanes right[lanes];
    for (int j = 0; j < lanes; j++) right[j] = load_lanes(row + j * kLanes);
    for (int i = 0; i < 4; i++) {
      const Lanes factor = broadcast(left[i]);
      for (int j = 0; j < lanes; j++) sum[i][j] += factor * right[j];
    }
  }
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < lanes; j++) store_lanes(c + i * c_stride + j * kLanes, sum[i][j]);
  }
}

// Updates `rows` rows of C, columns 0 .. n-1.
template <int rows>
void strip(double* c, int c_stride, const double* a, int a_stride, const double* b, int b_stride,
           int n, int k) {
  int column = 0, count = round_to_lanes(n) / kLanes;
  auto take = [&]<int lanes>() {
    for (; count >= lanes; count -= lanes, column += lanes * kLanes) {
      tile<rows, lanes>(c + column, c_stride, a, a_stride, b + column, b_stride, k);
    }
  };
  take.template operator()<3>();
  take.template operator()<2>();
  take.template operator()<1>();
}

// Calls visit.operator()<rows>(row) so that strips of four rows or one row cover m rows.
template <class F>
void visit_strips(int m, F visit) {
  int row = 0;
  for (; row + 4 <= m; row += 4) visit.template operator()<4>(row);
  for (; row < m; row++) visit.template operator()<1>(row);
}

}  // namespace

void add_product(double* c, int c_stride, const double* a, int a_stride, const double* b,
                 int b_stride, int m, int n, int k) {
  visit_strips(m, [&]<int rows>(int row) {
    strip<rows>(c + static_cast<std::ptrdiff_t>(row) * c_stride, c_stride, a + row, a_stride, b,
                b_stride, n, k);
  });
}

void add_symmetric_product(double* c, int c_stride, const double* a, int a_stride, const double* b,
                           int b_stride, int n, int k) {
  visit_strips(n, [&]<int rows>(int row) {
    strip<rows>(c + static_cast<std::ptrdiff_t>(row) * c_stride, c_stride, a + row, a_stride, b,
                b_stride, std::min(row + rows, n), k);
  });
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      c[static_cast<std::ptrdiff_t>(j) * c_stride + i] =
          c[static_cast<std::ptrdiff_t>(i) * c_stride + j];
    }
  }
}

void add_sparse_product(double* c, int c_stride, const double* a, int a_stride, const double* b,
                        int b_stride, int m, int n, int k, int* rows) {
  for (int i = 0; i < m; i += 4) {
    // the rows of A that are not zero in these four columns
    int count = 0;
    for (int step = 0; step < k; step++) {
      const double* four = a + static_cast<std::ptrdiff_t>(step) * a_stride + i;
      const bool any = four[0] != 0 || four[1] != 0 || four[2] != 0 || four[3] != 0;
      rows[count] = step;
      count += any;
    }
    if (count == 0) continue;
    double* to = c + static_cast<std::ptrdiff_t>(i) * c_stride;
    int column = 0, lanes = round_to_lanes(n) / kLanes;
    auto take = [&]<int number>() {
      for (; lanes >= number; lanes -= number, column += number * kLanes) {
        sparse_tile<number>(to + column, c_stride, a + i, a_stride, b + column, b_stride, rows,
                            count);
      }
    };
    take.template operator()<3>();
    take.template operator()<2>();
    take.template operator()<1>();
  }
}

void add_transpose(double* a, int stride, int n) {
  for (int i = 0; i < n; i += 4) {
    for (int j = 0; j <= i; j += 4) {
      // blocks of four rows and columns, which stay in the cache
      double* lower = a + static_cast<std::ptrdiff_t>(i) * stride + j;
      double* upper = a + static_cast<std::ptrdiff_t>(j) * stride + i;
      double sum[4][4];
      for (int r = 0; r < 4; r++)
        for (int s = 0; s < 4; s++) sum[r][s] = lower[r * stride + s] + upper[s * stride + r];
      for (int r = 0; r < 4; r++)
        for (int s = 0; s < 4; s++) lower[r * stride + s] = upper[s * stride + r] = sum[r][s];
    }
  }
}

}  // namespace mujacobian

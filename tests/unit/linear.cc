// Factorizations and products: cpp/linear and cpp/rods/sparse.h.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "arrays.h"
#include "casters.h"
#include "linear/cholesky.h"
#include "linear/combine.h"
#include "linear/dense.h"
#include "linear/elimination.h"
#include "linear/lu.h"
#include "primitives.h"
#include "rods/sparse.h"

namespace mujacobian {
namespace {

using Couplings = std::vector<std::pair<int, int>>;

// Factor `matrix`, whose blocks outside the pattern `touching` are not read, and solve for columns
// first .. last-1 of x. Returns the number of entries of the factor, or -1 if the matrix is not
// positive definite.
long solve_by_blocks(Indices sizes, Flags touching, Matrix matrix, Matrix x, int first, int last) {
  Arena arena;
  const int count = static_cast<int>(sizes.shape(0));
  std::vector<bool> coupled(touching.data(), touching.data() + touching.size());
  Elimination elimination(count, sizes.data(), touching.data(), arena);
  elimination.allocate(arena);
  elimination.clear();
  for (int r = 0, row = 0; r < count; row += sizes(r++)) {
    for (int c = 0, column = 0; c <= r; column += sizes(c++)) {
      if (r != c && !coupled[r * count + c]) continue;
      // one block by rows, the next one through its mirror image
      const bool mirrored = (r + c) % 2;
      const auto place = mirrored ? elimination.block(c, r) : elimination.block(r, c);
      const int row_step = mirrored ? place.column_step : place.row_step;
      const int column_step = mirrored ? place.row_step : place.column_step;
      for (int i = 0; i < sizes(r); i++) {
        for (int j = 0; j < (r == c ? i + 1 : sizes(c)); j++) {
          place.entry[i * row_step + j * column_step] += matrix(row + i, column + j);
        }
      }
    }
  }
  if (!elimination.factor()) return -1;
  elimination.solve(x.data(), stride(x), first, last);
  return static_cast<long>(elimination.entries());
}

// Factor a matrix of 3x3 blocks and solve in place. Returns (positive definite, singular).
std::pair<bool, bool> solve_sparse(Couplings couplings, Matrix matrix, std::vector<bool> fixed,
                                   double shift, bool anyway, Matrix x, Matrix product) {
  const int count = static_cast<int>(fixed.size());
  rods::SparseMatrix sparse(count, couplings);
  sparse.clear();
  auto add = [&](int r, int c) {
    Mat3 block;
    for (int i = 0; i < 9; i++) block.m[i] = matrix(3 * r + i / 3, 3 * c + i % 3);
    sparse.add(r, c, block);
  };
  for (int i = 0; i < count; i++) add(i, i);
  for (auto [r, c] : couplings) add(r, c);
  std::vector<Vec3> b(count), y(count);
  for (int i = 0; i < count; i++) b[i] = load3(x.data() + 3 * i);
  sparse.multiply(b, y);
  for (int i = 0; i < count; i++) store3(product.data() + 3 * i, y[i]);
  rods::Factor factor(sparse);
  // a factor is used again with other fixed rows: nothing of an earlier one may remain
  factor.compute(sparse, std::vector<char>(count, 0), shift, true);
  const bool positive =
      factor.compute(sparse, std::vector<char>(fixed.begin(), fixed.end()), shift, anyway);
  if (!positive && (!anyway || factor.singular())) return {positive, factor.singular()};
  factor.solve(b);
  for (int i = 0; i < count; i++) store3(x.data() + 3 * i, b[i]);
  return {positive, factor.singular()};
}

template <bool add>
void combine(Matrix out, Vector c, int next, int step, double scale, Matrix x) {
  combine_rows<add>(out.data(), rows(out), {c.data(), next, step, scale}, x.data(), rows(x),
                    stride(x));
}

void bind_lu(nanobind::module_& m) {
  m.def("factor_lu", [](Matrix a, Indices order) {
    Arena arena;
    return factor_lu(rows(a), a.data(), order.data(), arena);
  });
  m.def("solve_lu", [](Matrix factor, Indices order, Matrix x, int first, int last) {
    Arena arena;
    solve_lu(rows(factor), factor.data(), order.data(), x.data(), stride(x), first, last, arena);
  });
  m.def("solve_lu_transposed", [](Matrix factor, Indices order, Matrix x) {
    Arena arena;
    solve_lu_transposed(rows(factor), factor.data(), order.data(), x.data(), stride(x), arena);
  });
}

}  // namespace

void bind_linear(nanobind::module_& m) {
  bind_lu(m);
  m.def("factor_dense", [](Matrix a) { return factor_dense(a.data(), rows(a), stride(a)); });
  m.def("solve_dense", [](Matrix factor, Matrix x, int first, int last) {
    solve_dense(factor.data(), rows(factor), stride(factor), x.data(), stride(x), first, last);
  });
  m.def("add_product", [](Matrix c, Matrix a, Matrix b, int columns) {
    add_product(c.data(), stride(c), a.data(), stride(a), b.data(), stride(b), rows(c), columns,
                rows(a));
  });
  m.def("add_symmetric_product", [](Matrix c, Matrix a, Matrix b) {
    add_symmetric_product(c.data(), stride(c), a.data(), stride(a), b.data(), stride(b), rows(c),
                          rows(a));
  });
  m.def("add_sparse_product", [](Matrix c, Matrix a, Matrix b, int columns) {
    std::vector<int> room(rows(a));
    add_sparse_product(c.data(), stride(c), a.data(), stride(a), b.data(), stride(b), rows(c),
                       columns, rows(a), room.data());
  });
  m.def("add_transpose", [](Matrix a, int n) { add_transpose(a.data(), stride(a), n); });
  m.def("combine_rows", combine<false>);
  m.def("add_combined_rows", combine<true>);
  m.def("solve_by_blocks", solve_by_blocks);
  m.def("solve_sparse", solve_sparse);
}

}  // namespace mujacobian

#include "control/cost.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "linear/dense.h"
#include "linear/lanes.h"

namespace mujacobian {
namespace {

// Returns the values of the columns of a knot.
GraphValues column_values(const CostRows& rows, const CostKnot& knot, Arena& arena) {
  const GraphValues given{knot.sensors, knot.ctrl, nullptr};
  if (!rows.graph.count()) return given;
  double* nodes = arena.take<double>(rows.graph.count());
  rows.graph.evaluate(given, nodes);
  return {knot.sensors, knot.ctrl, nodes};
}

// Write the indices of the rows of a term that are not switched off, and their values. Returns
// their number.
int active_rows(const CostRows& rows, const CostKnot& knot, const GraphValues& at,
                const CostTerm& term, int* row, double* r) {
  int n = 0;
  for (int i = term.first; i < term.first + term.count; i++) {
    if (std::isnan(knot.offset[i])) continue;
    row[n] = i;
    r[n++] = rows.graph.value(rows, i, knot.offset[i], at);
  }
  return n;
}

// Add `scale` times the derivative (nz) of a sensor or control.
void add_column(const CostRows& rows, int index, double scale, const double* C, const double* D,
                double* out) {
  const int nx = rows.nx, nu = rows.nu;
  if (index >= rows.ns) {
    out[nx + index - rows.ns] += scale;
    return;
  }
  const double *c = C + static_cast<std::ptrdiff_t>(index) * nx,
               *d = D + static_cast<std::ptrdiff_t>(index) * nu;
  for (int j = 0; j < nx; j++) out[j] += scale * c[j];
  for (int j = 0; j < nu; j++) out[nx + j] += scale * d[j];
}

// Write the derivative (nz) of a scalar with these derivatives (ns + nu) by sensors and controls.
void push_to_state(const CostRows& rows, const double* gradient, const double* C, const double* D,
                   double* out) {
  std::memset(out, 0, rows.nz() * sizeof(double));
  for (int index = 0; index < rows.ns + rows.nu; index++) {
    if (gradient[index] != 0) add_column(rows, index, gradient[index], C, D, out);
  }
}

// Write the derivative dr/dz (nz) of a row.
void differentiate(const CostRows& rows, int row, const GraphValues& at, const double* C,
                   const double* D, double* out, Arena& arena) {
  const int begin = rows.start[row], end = rows.start[row + 1], width = rows.ns + rows.nu;
  const auto is_node = [=](int index) { return index >= width; };
  if (rows.graph.count() &&
      std::any_of(rows.index.data() + begin, rows.index.data() + end, is_node)) {
    const Arena::Mark mark = arena.mark();
    double* gradient = arena.take<double>(width);
    rows.graph.differentiate(rows, row, at, gradient, arena);
    push_to_state(rows, gradient, C, D, out);
    arena.rewind(mark);
    return;
  }
  std::memset(out, 0, rows.nz() * sizeof(double));
  for (int k = begin; k < end; k++) {
    add_column(rows, rows.index[k], rows.coefficient[k], C, D, out);
  }
}

// Write the derivatives of the weighted sum by all columns (ns + nu + nodes).              (ILQ-14)
void differentiate_columns(const CostRows& rows, const CostKnot& knot, const GraphValues& at,
                           const double* weights, double* gradient, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  int* row = arena.take<int>(rows.count());
  double *r = arena.take<double>(rows.count()), *slope = arena.take<double>(rows.count()),
         *curvature = arena.take<double>(rows.count());
  std::fill_n(gradient, rows.graph.width() + rows.graph.count(), 0.0);
  for (std::size_t k = 0; k < rows.terms.size(); k++) {
    if (weights[k] == 0) continue;
    const int n = active_rows(rows, knot, at, rows.terms[k], row, r);
    double bend;
    rows.terms[k].norm.expand(r, n, slope, curvature, bend);
    for (int i = 0; i < n; i++) {
      for (int e = rows.start[row[i]]; e < rows.start[row[i] + 1]; e++) {
        gradient[rows.index[e]] += weights[k] * slope[i] * rows.coefficient[e];
      }
    }
  }
  rows.graph.pull_back(at, gradient);
  arena.rewind(mark);
}

void add_scaled(double* to, double scale, const double* from, int n) {
  for (int j = 0; j < n; j++) to[j] += scale * from[j];
}

void set_scaled(double* to, double scale, const double* from, int n) {
  for (int j = 0; j < n; j++) to[j] = scale * from[j];
}

}  // namespace

std::vector<unsigned char> used_sensors(const ModelView& m, const CostRows& rows) {
  std::vector<unsigned char> used(m.nsensor, 0);
  for (int s = 0; s < m.nsensor; s++) {
    const int first = m.sensor_adr[s], end = first + m.sensor_dim[s];
    const auto is_read = [=](int index) { return index >= first && index < end; };
    const std::vector<int>& in_nodes = rows.graph.operands.index;
    used[s] = std::any_of(rows.index.begin(), rows.index.end(), is_read) ||
              std::any_of(in_nodes.begin(), in_nodes.end(), is_read);
  }
  return used;
}

double evaluate_cost(const CostRows& rows, const CostKnot& knot, const double* weights,
                     double* norms, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  int* row = arena.take<int>(rows.count());
  double* r = arena.take<double>(rows.count());
  const GraphValues at = column_values(rows, knot, arena);
  double sum = 0;
  for (std::size_t k = 0; k < rows.terms.size(); k++) {
    const CostTerm& term = rows.terms[k];
    const int n = active_rows(rows, knot, at, term, row, r);
    norms[k] = term.norm.value(r, n);
    if (weights[k] != 0) sum += weights[k] * norms[k];  // a weight of zero allows an infinite norm
  }
  arena.rewind(mark);
  return sum;
}

void expand_cost(const CostRows& rows, const CostKnot& knot, const double* weights, const double* C,
                 const double* D, double* gradient, double* hessian, int stride, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  const int nz = rows.nz(), most = rows.count() + static_cast<int>(rows.terms.size());
  int* row = arena.take<int>(rows.count());
  double *r = arena.take<double>(rows.count()), *slope = arena.take<double>(rows.count()),
         *curvature = arena.take<double>(rows.count());
  // the Hessian is left^T right: rows with curvature, and the same rows times their curvatures
  double *left = arena.zeros<double>(static_cast<std::size_t>(most) * stride),
         *right = arena.zeros<double>(static_cast<std::size_t>(most) * stride);
  std::memset(gradient, 0, nz * sizeof(double));
  std::memset(hessian, 0, static_cast<std::size_t>(nz) * stride * sizeof(double));
  const GraphValues at = column_values(rows, knot, arena);
  int curved = 0;
  for (std::size_t k = 0; k < rows.terms.size(); k++) {
    if (weights[k] == 0) continue;
    const CostTerm& term = rows.terms[k];
    const int n = active_rows(rows, knot, at, term, row, r);
    double bend;
    term.norm.expand(r, n, slope, curvature, bend);
    // `turned` is r^T dr/dz, which the rank-one part of the Hessian multiplies
    double *turned = arena.zeros<double>(bend != 0 ? stride : 0), *z = nullptr;
    for (int i = 0; i < n; i++) {
      z = left + static_cast<std::ptrdiff_t>(curved) * stride;
      differentiate(rows, row[i], at, C, D, z, arena);
      add_scaled(gradient, weights[k] * slope[i], z, nz);
      if (bend != 0) add_scaled(turned, r[i], z, nz);
      if (curvature[i] == 0) continue;
      set_scaled(right + static_cast<std::ptrdiff_t>(curved++) * stride, weights[k] * curvature[i],
                 z, nz);
    }
    if (bend != 0) {
      set_scaled(left + static_cast<std::ptrdiff_t>(curved) * stride, 1, turned, nz);
      set_scaled(right + static_cast<std::ptrdiff_t>(curved++) * stride, weights[k] * bend, turned,
                 nz);
    }
  }
  add_symmetric_product(hessian, stride, left, stride, right, stride, nz, curved);
  arena.rewind(mark);
}

void differentiate_cost(const CostRows& rows, const CostKnot& knot, const double* weights,
                        double* gradient, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  double* columns = arena.take<double>(rows.graph.width() + rows.graph.count());
  const GraphValues at = column_values(rows, knot, arena);
  differentiate_columns(rows, knot, at, weights, columns, arena);
  std::copy_n(columns, rows.ns, gradient);
  arena.rewind(mark);
}

void differentiate_rows(const CostRows& rows, const CostKnot& knot, double* values,
                        double* gradients, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  const GraphValues at = column_values(rows, knot, arena);
  for (int i = 0; i < rows.count(); i++) {
    values[i] = rows.graph.value(rows, i, knot.offset[i], at);
    if (!gradients) continue;
    rows.graph.differentiate(rows, i, at, gradients + i * rows.graph.width(), arena);
  }
  arena.rewind(mark);
}

void curve_cost(const CostRows& rows, const CostKnot& knot, const double* weights, const double* C,
                const double* D, double* hessian, int stride, Arena& arena) {
  if (!rows.graph.count()) return;
  const Arena::Mark mark = arena.mark();
  const GraphValues at = column_values(rows, knot, arena);
  double* columns = arena.take<double>(rows.graph.width() + rows.graph.count());
  differentiate_columns(rows, knot, at, weights, columns, arena);
  const int n = C ? rows.nz() : rows.graph.width();
  double *left = arena.take<double>(n), *right = arena.take<double>(n);
  rows.graph.curve(
      at, columns + rows.graph.width(), arena, [&](double scale, const double* a, const double* b) {
        if (C) {
          push_to_state(rows, a, C, D, left);
          push_to_state(rows, b, C, D, right);
          a = left, b = right;
        }
        for (int i = 0; i < n; i++) {
          add_scaled(hessian + static_cast<std::ptrdiff_t>(i) * stride, 0.5 * scale * a[i], b, n);
          add_scaled(hessian + static_cast<std::ptrdiff_t>(i) * stride, 0.5 * scale * b[i], a, n);
        }
      });
  arena.rewind(mark);
}

}  // namespace mujacobian

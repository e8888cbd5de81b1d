#include "control/cost.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "linear/dense.h"
#include "linear/lanes.h"

namespace mujacobian {
namespace {

// Value of a row.
double residual(const CostRows& rows, const CostKnot& knot, int row) {
  double sum = knot.offset[row];
  for (int k = rows.start[row]; k < rows.start[row + 1]; k++) {
    const int index = rows.index[k];
    const double value = index < rows.ns ? knot.sensors[index] : knot.ctrl[index - rows.ns];
    sum += rows.coefficient[k] * value;
  }
  return sum;
}

// Write the indices of the rows of a term that are not switched off, and their values. Returns
// their number.
int active_rows(const CostRows& rows, const CostKnot& knot, const CostTerm& term, int* row,
                double* r) {
  int n = 0;
  for (int i = term.first; i < term.first + term.count; i++) {
    if (std::isnan(knot.offset[i])) continue;
    row[n] = i;
    r[n++] = residual(rows, knot, i);
  }
  return n;
}

// Write the derivative dr/dz (nz) of a row.
void differentiate(const CostRows& rows, int row, const double* C, const double* D, double* out) {
  const int nx = rows.nx, nu = rows.nu;
  std::memset(out, 0, rows.nz() * sizeof(double));
  for (int k = rows.start[row]; k < rows.start[row + 1]; k++) {
    const int index = rows.index[k];
    const double scale = rows.coefficient[k];
    if (index >= rows.ns) {
      out[nx + index - rows.ns] += scale;
      continue;
    }
    const double *c = C + static_cast<std::ptrdiff_t>(index) * nx,
                 *d = D + static_cast<std::ptrdiff_t>(index) * nu;
    for (int j = 0; j < nx; j++) out[j] += scale * c[j];
    for (int j = 0; j < nu; j++) out[nx + j] += scale * d[j];
  }
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
    used[s] = std::any_of(rows.index.begin(), rows.index.end(),
                          [=](int index) { return index >= first && index < end; });
  }
  return used;
}

double evaluate_cost(const CostRows& rows, const CostKnot& knot, const double* weights,
                     double* norms, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  int* row = arena.take<int>(rows.count());
  double* r = arena.take<double>(rows.count());
  double sum = 0;
  for (std::size_t k = 0; k < rows.terms.size(); k++) {
    const CostTerm& term = rows.terms[k];
    const int n = active_rows(rows, knot, term, row, r);
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
  int curved = 0;
  for (std::size_t k = 0; k < rows.terms.size(); k++) {
    if (weights[k] == 0) continue;
    const CostTerm& term = rows.terms[k];
    const int n = active_rows(rows, knot, term, row, r);
    double bend;
    term.norm.expand(r, n, slope, curvature, bend);
    // `turned` is r^T dr/dz, which the rank-one part of the Hessian multiplies
    double *turned = arena.zeros<double>(bend != 0 ? stride : 0), *z = nullptr;
    for (int i = 0; i < n; i++) {
      z = left + static_cast<std::ptrdiff_t>(curved) * stride;
      differentiate(rows, row[i], C, D, z);
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
  int* row = arena.take<int>(rows.count());
  double *r = arena.take<double>(rows.count()), *slope = arena.take<double>(rows.count()),
         *curvature = arena.take<double>(rows.count());
  std::fill_n(gradient, rows.ns, 0.0);
  for (std::size_t k = 0; k < rows.terms.size(); k++) {
    if (weights[k] == 0) continue;
    const int n = active_rows(rows, knot, rows.terms[k], row, r);
    double bend;
    rows.terms[k].norm.expand(r, n, slope, curvature, bend);
    for (int i = 0; i < n; i++) {
      for (int e = rows.start[row[i]]; e < rows.start[row[i] + 1]; e++) {
        if (rows.index[e] >= rows.ns) continue;
        gradient[rows.index[e]] += weights[k] * slope[i] * rows.coefficient[e];
      }
    }
  }
  arena.rewind(mark);
}

}  // namespace mujacobian

// Costs of knots: weighted norms of affine rows of sensor readings and controls.
#pragma once

#include <vector>

#include "control/norm.h"
#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// What the rows of a term are, and their norm.
struct CostTerm {
  int first, count;  // rows
  Norm norm;
};

// Row i is sum_k coefficient[k] (s, u)[index[k]] + offset, k = start[i] .. start[i+1]-1, where the
// offset, constant minus target, depends on time. A row whose offset is NaN is off.
struct CostRows {
  int ns, nu, nx;
  std::vector<int> start, index;
  std::vector<double> coefficient;
  std::vector<CostTerm> terms;

  int count() const { return static_cast<int>(start.size()) - 1; }
  int nz() const { return nx + nu; }
};

// Which sensors (nsensor) the rows read.
std::vector<unsigned char> used_sensors(const ModelView& m, const CostRows& rows);

// One knot.
struct CostKnot {
  const double* sensors;  // (ns)
  const double* ctrl;     // (nu)
  const double* offset;   // (rows)
};

// The norms of all terms, without weights, into `norms` (terms); returns their weighted sum.
double evaluate_cost(const CostRows& rows, const CostKnot& knot, const double* weights,
                     double* norms, Arena& arena);

// Gradient (nz) and Hessian (nz, `stride`), z = (x, u), of the weighted sum, given C (ns, nx) and
// D (ns, nu) by rows; `stride` is nz padded to whole lanes.                               (ILQ-3)
void expand_cost(const CostRows& rows, const CostKnot& knot, const double* weights, const double* C,
                 const double* D, double* gradient, double* hessian, int stride, Arena& arena);

}  // namespace mujacobian

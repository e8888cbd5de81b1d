// Cost of a knot: a weighted sum of norms of rows that are affine in sensor readings and controls.
#pragma once

#include <vector>

#include "control/norm.h"
#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// A range of rows and its norm.
struct CostTerm {
  int first, count;  // first row and number of rows
  Norm norm;
};

// Rows of all terms, in compressed form. Row i is the sum of coefficient[k] (s, u)[index[k]] over
// k = start[i] .. start[i+1]-1, plus an offset: constant minus target, which depends on time. A NaN
// offset switches the row off.
struct CostRows {
  int ns, nu, nx;
  std::vector<int> start, index;
  std::vector<double> coefficient;
  std::vector<CostTerm> terms;

  int count() const { return static_cast<int>(start.size()) - 1; }
  int nz() const { return nx + nu; }
};

// Returns for each sensor (nsensor) whether the rows read it.
std::vector<unsigned char> used_sensors(const ModelView& m, const CostRows& rows);

// Values of one knot.
struct CostKnot {
  const double* sensors;  // (ns)
  const double* ctrl;     // (nu)
  const double* offset;   // (rows)
};

// Write the norms of all terms, without weights, into `norms` (terms). Returns their weighted sum.
double evaluate_cost(const CostRows& rows, const CostKnot& knot, const double* weights,
                     double* norms, Arena& arena);

// Write the gradient (nz) and Hessian (nz, `stride`) of the weighted sum with respect to z = (x,
// u), given C (ns, nx) and D (ns, nu). `stride` is nz padded to whole lanes. (ILQ-3)
void expand_cost(const CostRows& rows, const CostKnot& knot, const double* weights, const double* C,
                 const double* D, double* gradient, double* hessian, int stride, Arena& arena);

// Write the gradient of the weighted sum with respect to the sensor readings (ns).        (ILQ-14)
void differentiate_cost(const CostRows& rows, const CostKnot& knot, const double* weights,
                        double* gradient, Arena& arena);

}  // namespace mujacobian

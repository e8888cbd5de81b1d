// Cost of a knot: a weighted sum of norms of rows that are affine in sensor readings, controls, and
// products and smooth functions of them.
#pragma once

#include <vector>

#include "control/graph.h"
#include "control/norm.h"
#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// A range of rows and its norm.
struct CostTerm {
  int first, count;  // first row and number of rows
  Norm norm;
};

// Rows of all terms. To the affine expression of its columns, each row adds an offset: constant
// minus target, which depends on time. A NaN offset switches the row off.
struct CostRows : AffineRows {
  int ns, nu, nx;
  std::vector<CostTerm> terms;
  CostGraph graph;

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

// Write the values of all rows (rows), NaN if a row is off, and their derivatives (rows, ns + nu)
// by sensors and controls unless `gradients` is null.
void differentiate_rows(const CostRows& rows, const CostKnot& knot, double* values,
                        double* gradients, Arena& arena);

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

// Add the part of the second derivative of the weighted sum that is due to products and functions
// of rows: with respect to z, given C and D, or to sensors and controls if C is null (ILQ-21).
// `stride` is the distance between two rows of `hessian`.
void curve_cost(const CostRows& rows, const CostKnot& knot, const double* weights, const double* C,
                const double* D, double* hessian, int stride, Arena& arena);

}  // namespace mujacobian

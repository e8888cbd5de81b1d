// Derivative of constraint forces, docs/derivations/constraints.md:
//   df = -H (J da + rho) + f dlogD                                                      (ROW-12)
#pragma once

#include "constraint/exact_diagonal.h"
#include "linear/combine.h"

namespace mujacobian {

// y = scale H x, where x and y are (count, n).
inline void multiply_hessian(const Block& b, double scale, const double* x, double* y) {
  static_assert(kMaxRows == kMaxCombined);
  combine_rows<false>(y, b.count, {b.hessian, b.count, 1, scale}, x, b.count, b.stride);
}

// The derivative of the forces of one block, in its coordinates. All matrices are (count, n) over
// the dofs of the block, with its stride.
struct ForceDerivative {
  double* acc;    // coefficients of da: -H J
  double *q, *v;  // at fixed acceleration: -H rho + f dlogD

  // d log D over all dofs of the component, with the flag diagexact: df_r += (df_r/dlogD) dlogD
  DiagonalChange* diagonal;
  int diagonal_count;
};

// Computes df/dq and df/dv at fixed acceleration, (count, n), from the derivative of the rows.
void force_change(const Block& block, const BlockChange& change, double* q, double* v);

// Returns the derivative of the forces of a block. `motion` is the motion at the constrained
// acceleration, and `residual` defines the components.
ForceDerivative force_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                                 const Blocks& blocks, const Block& block,
                                 const BlockMotion& motion, const DofRows& residual, Arena& arena);

}  // namespace mujacobian

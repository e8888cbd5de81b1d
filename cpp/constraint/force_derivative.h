// Derivative of constraint forces, docs/derivations/constraints.md:
//   df = -H (J da + rho) + f dlogD                                                      (ROW-12)
#pragma once

#include "constraint/exact_diagonal.h"
#include "linear/combine.h"

namespace mujacobian {

// y = scale H x, both (count, n)
inline void multiply_hessian(const Block& b, double scale, const double* x, double* y) {
  for (int r = 0; r < b.count; r++) {
    combine_rows<false>(y + r * b.stride, b.hessian + r * b.count, 1, scale, x, b.count, b.stride);
  }
}

// Of one block, in its own coordinates (normal, tangents, spins for a contact, pyramids too). All
// matrices are (count, n) over the block's dofs, with its stride.
struct ForceDerivative {
  double* acc;    // coefficients of da: -H J
  double *q, *v;  // at fixed acceleration: -H rho + f dlogD

  // d log D beyond the block's dofs, with the flag diagexact: df_r += f_r dlogD for its rows
  DiagonalChange* diagonal;
  int diagonal_count;
};

// df/dq and df/dv at fixed acceleration, (count, n), from the derivative of the block's rows.
void force_change(const Block& block, const BlockChange& change, double* q, double* v);

// `motion` is that of the constrained acceleration, `residual` gives the components.
ForceDerivative force_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                                 const Blocks& blocks, const Block& block,
                                 const BlockMotion& motion, const DofRows& residual, Arena& arena);

}  // namespace mujacobian

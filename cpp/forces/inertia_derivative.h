// Derivative of the mass matrix, contracted with a vector.
#pragma once

#include "tree/inverse_dynamics.h"

namespace mujacobian {

// Set the residual's q columns to -d(M x)/dq: inverse dynamics at rest and without gravity. The
// residual must be zero on entry.
void inertia_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                        const double* x, const DofRows& residual, Arena& arena);

// Add d(M_jj)/dq to row j of the residual's q columns, for every dof j.                    (DIS-9)
void add_inertia_diagonal_derivative(const ModelView& m, const DataView& d, const DofRows& residual,
                                     Arena& arena);

}  // namespace mujacobian

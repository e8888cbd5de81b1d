// Derivative of the mass matrix, contracted with a vector.
#pragma once

#include "tree/inverse_dynamics.h"

namespace mujacobian {

// Sets the q columns of the residual to -d(M x)/dq, by inverse dynamics at rest and without
// gravity. The residual must be zero on entry.
void inertia_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                        const double* x, const DofRows& residual, Arena& arena);

// Adds d(M_jj)/dq to row j of the q columns of the residual, for every dof j.              (DIS-9)
void add_inertia_diagonal_derivative(const ModelView& m, const DataView& d, const DofRows& residual,
                                     Arena& arena);

}  // namespace mujacobian

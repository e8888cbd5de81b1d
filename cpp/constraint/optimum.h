// The constrained acceleration: the minimum of MuJoCo's convex problem, its forces, and the
// factored Hessian K = M + J^T H J. docs/derivations/constraints.md.
#pragma once

#include "constraint/block.h"
#include "linear/elimination.h"
#include "tree/inertia.h"

namespace mujacobian {

struct Optimum {
  double* acc;                 // the minimum, found by Newton's method from MuJoCo's qacc
  double* force;               // J^T f
  double residual;             // of M a = qfrc_smooth + J^T f, relative to the largest of the three
  double residual_before;      // the same at MuJoCo's own qacc
  InertiaFactor tree;          // factor of K in components where K has the sparsity pattern of M
  double* const* dense;        // per component: its dense factor, or null
  Elimination* const* sparse;  // per component: its factor by blocks, or null
};

// Returns the optimum, found from qacc. Throws std::domain_error if it is too far away.
Optimum find_optimum(const ModelView& m, const DataView& d, const Topology& tree,
                     const DofRows& residual, Blocks& blocks, Arena& arena);

// x <- K^-1 x for columns first .. last-1 of a component.
void solve_hessian(const ModelView& m, const Topology& tree, const Optimum& optimum,
                   const Component& part, int index, int first, int last);

// x <- K^-1 x for one vector over all dofs.
void solve_hessian(const ModelView& m, const Topology& tree, const Optimum& optimum,
                   const DofRows& residual, double* x, Arena& arena);

// y += M x
void multiply_inertia(const ModelView& m, const DataView& d, const double* x, double* y);

// Computes the dense K (nv, nv) at the current Hessians of the blocks.
void fill_hessian(const ModelView& m, const DataView& d, const Blocks& blocks, double* K);

// Adds the derivative of the constraint forces at fixed acceleration to the residual:
//   dJ^T f - J^T (H rho - f dlogD)                                                       (ROW-2)
void add_blocks(const ModelView& m, const DataView& d, const Topology& tree, const Blocks& blocks,
                const double* acc, const DofRows& residual, Arena& arena);

}  // namespace mujacobian

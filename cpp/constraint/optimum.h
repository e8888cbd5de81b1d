// The constrained acceleration: the minimum of MuJoCo's convex problem, its forces, and the
// factored Hessian K = M + J^T H J. docs/derivations/constraints.md.
#pragma once

#include "constraint/block.h"
#include "linear/elimination.h"
#include "tree/inertia.h"

namespace mujacobian {

struct Optimum {
  double* acc;                 // qacc, polished where MuJoCo's solver stopped short of the optimum
  double* force;               // J^T f
  double residual;             // of M a = qfrc_smooth + J^T f, relative to the largest of the three
  double residual_before;      // the same at MuJoCo's own qacc
  InertiaFactor tree;          // K of the components whose blocks stay within the pattern of M
  double* const* dense;        // per component: its dense factor, null where `tree` serves
  Elimination* const* sparse;  // or its factor by blocks
};

// Find the optimum starting from qacc. Throws std::domain_error if it is too far away.
Optimum find_optimum(const ModelView& m, const DataView& d, const Topology& tree,
                     const DofRows& residual, Blocks& blocks, Arena& arena);

// Columns first .. last-1 of a component: x <- K^-1 x
void solve_hessian(const ModelView& m, const Topology& tree, const Optimum& optimum,
                   const Component& part, int index, int first, int last);

// x <- K^-1 x for one vector over all dofs
void solve_hessian(const ModelView& m, const Topology& tree, const Optimum& optimum,
                   const DofRows& residual, double* x, Arena& arena);

// y += M x
void multiply_inertia(const ModelView& m, const DataView& d, const double* x, double* y);

// K (nv, nv) at the blocks' current Hessians
void fill_hessian(const ModelView& m, const DataView& d, const Blocks& blocks, double* K);

// Add the blocks' derivative to the residual:
//   dJ^T f - J^T (H rho - f dlogD)                                                       (ROW-2)
void add_blocks(const ModelView& m, const DataView& d, const Topology& tree, const Blocks& blocks,
                const double* acc, const DofRows& residual, Arena& arena);

}  // namespace mujacobian

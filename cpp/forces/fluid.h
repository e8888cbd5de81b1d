// Forces of the medium (density, viscosity, wind) on moving bodies. A body is approximated by its
// inertia box or by the ellipsoids of its geoms. docs/derivations/fluid.md.
#pragma once

#include "layout/topology.h"
#include "spatial/matrix6.h"
#include "tree/dof_rows.h"

namespace mujacobian {

// Returns whether the medium exerts forces.
bool fluid_enabled(const ModelView& m);

// Adds the derivatives of the fluid forces to the residual.
void add_fluid(const ModelView& m, const DataView& d, const DofRows& residual, Arena& arena);

// The part of d(fluid forces)/dv that the matrix of an implicit integrator contains.
enum class FluidPart {
  kAll,        // implicit: all of it
  kSymmetric,  // implicitfast: the symmetric part, for free bodies all of it
  kDrag,       // discrete: the symmetric part of the drag
};

// The matrix D of this part.
struct FluidDamping {
  const Mat6* composite;  // sum over the subtree of each body; null: there is no fluid

  // Returns D_ij for dofs i and j of one chain.
  double entry(const ModelView& m, const DataView& d, int i, int j) const;
};
FluidDamping fluid_damping(const ModelView& m, const DataView& d, FluidPart part, Arena& arena);

// Adds `scale` d(D w) to the residual, where D is fluid_damping within the sparsity pattern of M. D
// is not restricted to this pattern if `full_pattern` is set, and for trees of a single free body.
void add_fluid_damping_change(const ModelView& m, const DataView& d, FluidPart part,
                              bool full_pattern, const double* w, double scale,
                              const DofRows& residual, Arena& arena);

// Adds `scale` d(D_jj) to row j of the residual, for every dof j.
void add_fluid_diagonal_change(const ModelView& m, const DataView& d, FluidPart part, double scale,
                               const DofRows& residual, Arena& arena);

}  // namespace mujacobian

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

// Returns the element with only those forces that the integrator treats implicitly.
struct FluidElement;
FluidElement implicit_part(FluidElement e, FluidPart part);

// Returns whether the integrator uses the symmetric part of B for the elements of this body.
bool is_symmetrized(const ModelView& m, int body, FluidPart part);

// Returns 0 if the row of D of this dof has all entries of the pattern of M. In a tree whose M is
// diagonal (a body that slides or is free), a row has only the entry D_ii; the result is then 1
// plus the place of the dof in its tree. implicitfast has a full block for free bodies.
inline constexpr int kMaxGroups = 7;
int row_group(const ModelView& m, FluidPart part, int dof);

// Returns the change S'_k + (0, w_k x wind) of the velocity relative to the medium with q_k, in
// addition to the rigid motion.                                                          (FLU-2)
Motion velocity_change(const ModelView& m, const DataView& d, int k);

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

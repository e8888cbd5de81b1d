// Forces of the medium (density, viscosity, wind) on moving bodies: inertia boxes of bodies and
// ellipsoids of geoms. docs/derivations/fluid.md.
#pragma once

#include "layout/topology.h"
#include "spatial/matrix6.h"
#include "tree/dof_rows.h"

namespace mujacobian {

// The medium exerts forces.
bool fluid_enabled(const ModelView& m);

// Add the derivatives of the fluid forces to the residual.
void add_fluid(const ModelView& m, const DataView& d, const DofRows& residual, Arena& arena);

// What the implicit integrators know of d(fluid forces)/dv: implicit all of it, implicitfast its
// symmetric part except for free bodies, discrete the symmetric part of the drag.
enum class FluidPart { kAll, kSymmetric, kDrag };

struct FluidDamping {
  const Mat6* composite;  // sum over the subtree under a body; null: there is no fluid

  // D_ij, for dofs i and j of one chain
  double entry(const ModelView& m, const DataView& d, int i, int j) const;
};
FluidDamping fluid_damping(const ModelView& m, const DataView& d, FluidPart part, Arena& arena);

// Add `scale` d(D w) to the residual, D being fluid_damping within the pattern of M or, for trees
// of a single free body and where `full_pattern` is set, without restriction.
void add_fluid_damping_change(const ModelView& m, const DataView& d, FluidPart part,
                              bool full_pattern, const double* w, double scale,
                              const DofRows& residual, Arena& arena);

// Add `scale` d(D_jj) to row j of the residual, for every dof j.
void add_fluid_diagonal_change(const ModelView& m, const DataView& d, FluidPart part, double scale,
                               const DofRows& residual, Arena& arena);

}  // namespace mujacobian

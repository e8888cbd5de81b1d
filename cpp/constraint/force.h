// Constraint forces and their Hessians at a given acceleration, docs/derivations/constraints.md.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Sets the force and the Hessian of the block at acceleration `acc`, in the coordinates of the
// block. It uses MuJoCo's aref and D, but not MuJoCo's states of the rows, which can be out of
// date.
void evaluate(const ModelView& m, const DataView& d, const double* acc, Block& block);

// Edge n + mu t_k (side 0) or n - mu t_k (side 1) of a pyramid, at `moved` = J a.
struct Edge {
  double mu;                // with the sign of the side
  double force, stiffness;  // both zero if the edge is not active
};
Edge pyramid_edge(const DataView& d, const Block& block, const double* moved, int k, int side);

// J a - aref of an elliptic contact in coordinates in which its cone is circular.          (ROW-9)
struct ConePoint {
  enum Zone { kFree, kSticking, kSliding } zone;
  double scale[kMaxRows], u[kMaxRows];  // u = scale x
  double t;                             // length of the tangential part of u
  double stiffness;                     // D_m
};
ConePoint cone_point(const DataView& d, const Block& block, const double* x);

}  // namespace mujacobian

// The groups of friction forces that the noslip solver updates one after another.
// docs/derivations/noslip.md.
#pragma once

#include "constraint/block.h"
#include "constraint/qcqp.h"
#include "layout/enums.h"

namespace mujacobian {

// Friction forces that one update changes together: a dry friction row, one pair of pyramid edges
// (the tangential force of the contact along one axis), or all tangential forces of an elliptic
// cone.
struct FrictionBlock {
  const Block* block;
  int first, count;  // its rows in the block
  bool cone;
  double force[kMaxFriction];  // after the updates so far
  double aref[kMaxFriction];
  double limit;  // bound of |force|, or the normal force of a cone

  int reach;                              // number of dofs of the trees that it moves
  const int* dofs;                        // the dofs of these trees
  double* z;                              // (count, reach): M^-1 J^T
  double A[kMaxFriction * kMaxFriction];  // J z, with MuJoCo's floor on the diagonal
};

inline bool is_dry(const Block& b) {
  return b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon;
}

// Returns the Jacobian of a row of the friction block.
inline const double* row_of(const FrictionBlock& friction, int r) {
  return friction.block->J + (friction.first + r) * friction.block->stride;
}

// Computes J acc of all rows of a block.
void move_block(const Block& b, const double* acc, double* moved);

// Writes all friction blocks of a state at the acceleration of the optimum, in the order of
// MuJoCo's rows, and returns their number. A contact without normal force has none.
int make_friction_blocks(const ModelView& m, const DataView& d, const Blocks& blocks,
                         const double* acc, FrictionBlock* frictions, Arena& arena);

}  // namespace mujacobian

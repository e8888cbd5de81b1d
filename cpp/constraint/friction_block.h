// What the noslip solver updates, one after another. docs/derivations/noslip.md.
#pragma once

#include "constraint/block.h"
#include "constraint/qcqp.h"
#include "layout/enums.h"

namespace mujacobian {

// Friction forces that are updated together: a dry friction row, one pair of pyramid edges (the
// tangential force of the contact along one axis), or all tangential forces of an elliptic cone.
struct FrictionBlock {
  const Block* block;
  int first, count;  // its rows in the block
  bool cone;
  double force[kMaxFriction];  // so far
  double aref[kMaxFriction];
  double limit;  // bound of |force|; normal force of a cone

  int reach;                              // number of dofs of the trees that it moves
  const int* dofs;                        // these
  double* z;                              // (count, reach): M^-1 J^T
  double A[kMaxFriction * kMaxFriction];  // J z, with MuJoCo's floor on the diagonal
};

inline bool is_dry(const Block& b) {
  return b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon;
}

// The Jacobian of a row of the friction block
inline const double* row_of(const FrictionBlock& friction, int r) {
  return friction.block->J + (friction.first + r) * friction.block->stride;
}

// J acc of all rows of a block
void move_block(const Block& b, const double* acc, double* moved);

// All friction blocks of a state at the optimum's acceleration, in the order of MuJoCo's rows;
// returns their number. There are none where no force presses.
int make_friction_blocks(const ModelView& m, const DataView& d, const Blocks& blocks,
                         const double* acc, FrictionBlock* frictions, Arena& arena);

}  // namespace mujacobian

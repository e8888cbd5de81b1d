// What the noslip solver updates, one after another. docs/derivations/noslip.md.
#pragma once

#include "constraint/block.h"
#include "constraint/qcqp.h"
#include "layout/enums.h"

namespace mujacobian {

// Friction forces that are updated together: a dry friction row, one pair of pyramid edges (the
// tangential force of the contact along one axis), or all tangential forces of an elliptic cone.
struct Rub {
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

// The Jacobian of a row of the rub
inline const double* row_of(const Rub& rub, int r) {
  return rub.block->J + (rub.first + r) * rub.block->stride;
}

// J acc of all rows of a block
void move_block(const Block& b, const double* acc, double* moved);

// All rubs of a state at the optimum's acceleration, in the order of MuJoCo's rows; returns their
// number. There are none where no force presses.
int make_rubs(const ModelView& m, const DataView& d, const Blocks& blocks, const double* acc,
              Rub* rubs, Arena& arena);

}  // namespace mujacobian

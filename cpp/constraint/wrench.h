// The wrenches that contacts, connects and welds exert on their two bodies, as MuJoCo sums them in
// cfrc_ext, and how contacts move. docs/derivations/sensors.md.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Of one block. Body s feels sign[s] W, with W about the point at[s] of space.           (SEN-19)
struct BlockWrench {
  int body[2];
  double sign[2];
  Vec3 at[2];
  Force unit[kMaxRows];  // W of a unit force in one row
  Force value;           // W of the block's forces
  Force* change[2];      // of W about at[s] for each dof of the block, its forces fixed
};

// The block is of one of these kinds.
bool has_wrench(const ModelView& m, const Block& block);

BlockWrench block_wrench(const ModelView& m, const DataView& d, const Block& block, Arena& arena);

// How a contact moves with each dof of its block.
const ContactVariation* contact_variations(const Block& block, Arena& arena);

// Force and torque of a contact in its frame; adhesion pulls along the normal.
struct ContactForce {
  double value[kMaxRows];
};
ContactForce contact_force(const Block& block);

// By kind of row.
BlockWrench contact_wrench(const ModelView& m, const Block& block, Arena& arena);
BlockWrench point_equality_wrench(const ModelView& m, const DataView& d, const Block& block,
                                  Arena& arena);

}  // namespace mujacobian

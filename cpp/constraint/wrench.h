// The wrenches of contacts, connects and welds on their two bodies, which MuJoCo sums in cfrc_ext,
// and the motions of contacts. docs/derivations/sensors.md.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// The wrench of one block. The wrench on body s is sign[s] W, with W about the point at[s].
// (SEN-19)
struct BlockWrench {
  int body[2];
  double sign[2];
  Vec3 at[2];
  Force unit[kMaxRows];  // W of a unit force in each row
  Force value;           // W of the forces of the block
  Force* change[2];      // change of W about at[s] with each dof of the block, at fixed forces
};

// Returns whether the block is a connect or weld.
bool is_point_equality(const ModelView& m, const Block& block);

// Returns whether the block is a contact, connect or weld.
bool has_wrench(const ModelView& m, const Block& block);

BlockWrench block_wrench(const ModelView& m, const DataView& d, const Block& block, Arena& arena);

// Returns the motion of a contact with each dof of its block.
const ContactVariation* contact_variations(const ModelView& m, const Block& block, Arena& arena);

// Force and torque of a contact in its frame, including adhesion along the normal.
struct ContactForce {
  double value[kMaxRows];
};
ContactForce contact_force(const Block& block);

// block_wrench by kind of row.
BlockWrench contact_wrench(const ModelView& m, const Block& block, Arena& arena);
BlockWrench point_equality_wrench(const ModelView& m, const DataView& d, const Block& block,
                                  Arena& arena);

}  // namespace mujacobian

// The state of a contact at which its rows are differentiated.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Returns the axis of a row of a contact, in world axes.
Vec3 contact_axis(const ContactGeometry& contact, int row);

// A contact with the motion y = a + B v of its bodies. Normal rows and friction rows may have
// different damping B.
struct ContactMotion {
  Force wrench;            // of the contact on body 1
  double damping[2];       // B of normal rows and of friction rows
  int kinds;               // number of different B: 1 or 2
  Motion y[2][2];          // [kind of row][side], about the contact
  Motion relative[2];      // [kind of row], side 1 relative to side 0
  double slope[kMaxRows];  // d(J a - aref)/d(distance)
  double dlogD;            // d(log D)/d(distance)
};

ContactMotion contact_motion(const ModelView& m, const DataView& d, const Block& block,
                             const BlockMotion& motion);

// Returns R adhesion, which adhesion adds to the reference acceleration of the normal row. The
// edges of a pyramid share it.
double adhesive_reference(const DataView& d, const Block& block);

// The velocities of moving surfaces, such as conveyor belts. They turn with their geoms.
struct SurfaceVelocity {
  bool any;
  Vec3 lin[2], ang[2];  // for each geom, in world axes; `lin` is at the center of the geom
  Vec3 arm[2];          // from the center of the geom to the contact
};

SurfaceVelocity surface_velocity(const ModelView& m, const DataView& d, const Block& block);

}  // namespace mujacobian

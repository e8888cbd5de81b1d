// Contacts of ellipsoids, brought from MuJoCo's approximate contact to the optimum without a second
// collision. docs/derivations/contacts.md, "Contacts at the user's collider tolerance".
#pragma once

#include "layout/engine.h"
#include "layout/views.h"

namespace mujacobian {

// Whether contacts between two geoms of these types, by MuJoCo's native collider, can be polished:
// an ellipsoid and a sphere, capsule, ellipsoid or box. They touch in a single point.
bool can_polish(const ModelView& m, const ContactView& contact);

// Sets `out` to the contact at which a converged collider would end, to rounding. `contact` is the
// one that a collider with this `tolerance` has found. Returns false if the pair cannot be polished
// or if the result is not proved to be the only optimum.                                  (CON-44)
bool polish(const ModelView& m, const DataView& d, const ContactView& contact, double tolerance,
            PreContact& out);

}  // namespace mujacobian

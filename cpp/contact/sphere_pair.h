// A sphere against a box, for the pairs sphere - box and capsule - box.
#pragma once

#include "contact/geometry.h"

namespace mujacobian {

// Sets the feature of the contact and its region.
void find_sphere_on_box(const Geom& sphere, const Geom& box, ContactGeometry& g);

}  // namespace mujacobian

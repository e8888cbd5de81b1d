// Capsules and cylinders along faces.
#pragma once

#include "contact/geometry.h"
#include "layout/views.h"

namespace mujacobian {

// A capsule or cylinder along a face of a box, of a mesh or of a cylinder, or a cap on such a face.
bool identify_segment_on_face(const ModelView& m, const DataView& d, const ContactView& contact,
                              ContactGeometry& geometry);

}  // namespace mujacobian

// Volumes of sites.
#pragma once

#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

// Returns whether a point is inside the volume of a site.
bool inside_site(const ModelView& m, const DataView& d, int site, Vec3 point);

}  // namespace mujacobian

// Membership in the zone of a site.
#pragma once

#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

bool inside_site(const ModelView& m, const DataView& d, int site, Vec3 point);

}  // namespace mujacobian

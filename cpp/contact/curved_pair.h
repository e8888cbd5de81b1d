// Features of curved geoms that other pairs use, too.
#pragma once

#include "contact/geometry.h"
#include "contact/prism.h"
#include "layout/views.h"

namespace mujacobian {

// Nearest or deepest points of the true surfaces. `prism`: geom 0 is this piece of a height field;
// null: it is a geom.                                                                      (CON-14)
bool find_supports(const ModelView& m, const DataView& d, const ContactView& contact,
                   const Prism* prism, ContactGeometry& g);

}  // namespace mujacobian

// How well MuJoCo's convex collider knows the contacts of curved geoms, and those of boxes and
// meshes that are rounded by a margin.
#pragma once

#include <cmath>

#include "layout/views.h"

namespace mujacobian {

// Error of the normal, in rad: the collider stops within a tolerance of the distance, and the
// normal is off by its square root.
inline double normal_error(const ModelView& m) {
  return 1e-7 + std::sqrt(std::fmax(0, m.opt.ccd_tolerance));
}

// How well features must reproduce such contacts.
inline double curved_agreement(const ModelView& m) { return 30 * normal_error(m); }

}  // namespace mujacobian

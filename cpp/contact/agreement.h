// Accuracy of MuJoCo's convex collider for contacts of curved geoms, and of boxes and meshes that a
// margin rounds.
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

// Returns MuJoCo's detection distance of the pair: margin plus gap.
inline double detection(const ModelView& m, const ContactView& contact) {
  const int* g = contact.geom.v;
  for (int k = 0; k < m.npair; k++) {
    const int first = m.pair_geom1[k], second = m.pair_geom2[k];
    if ((first == g[0] && second == g[1]) || (first == g[1] && second == g[0])) {
      return contact.includemargin + m.pair_gap[k];
    }
  }
  return contact.includemargin + m.geom_gap[g[0]] + m.geom_gap[g[1]];
}

// Error of points of geoms that a margin rounds: half a chord of that radius whose height is the
// collider's tolerance.
inline double rounded_point_error(const ModelView& m, double margin) {
  return 2 * std::sqrt(margin * std::fmax(0, m.opt.ccd_tolerance));
}

// How well features must reproduce contacts of boxes and meshes that a margin rounds.
inline double rounded_agreement(const ModelView& m, double margin) {
  return curved_agreement(m) + 4 * std::sqrt(std::fmax(0, m.opt.ccd_tolerance) / margin);
}

}  // namespace mujacobian

// Identification: finds the features (face, vertex, end of a capsule, ...) that made MuJoCo's
// contact, computes the contact again from them, and compares the result with MuJoCo's numbers.
#pragma once

#include "contact/geometry.h"
#include "layout/views.h"

namespace mujacobian {

// Returns a contact with its features, or with a refusal if the pair is not covered or no features
// reproduce the contact. Throws Unsupported for a contact of a flexible body. The search begins
// where the search for the contact `before` ended, because the points of a manifold follow one
// another.
ContactGeometry identify(const ModelView& m, const DataView& d, const ContactView& contact,
                         const ContactGeometry* before = nullptr);

// Throws Unsupported with the names of both geoms if the features of the contact are not known.
void require_features(const ModelView& m, const ContactView& contact,
                      const ContactGeometry& geometry);

// Identifies the features of the nearest or deepest points of two geoms as mj_geomDistance finds
// them. The geoms are in the order of their types, and `pair` has no tangents. Returns false if no
// features reproduce the points.
bool identify_nearest(const ModelView& m, const DataView& d, const ContactView& pair,
                      ContactGeometry& geometry);

// Short English name of the features, for `mujacobian.diagnose`.
std::string describe(const ContactGeometry& geometry);

}  // namespace mujacobian

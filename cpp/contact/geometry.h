// A contact with the features that made it. identification.h finds them, and variation.h
// differentiates the contact. docs/derivations/contacts.md.
#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include "contact/feature.h"

namespace mujacobian {

// The same contact of two boxes with parallel faces, over the face of the box that is not the
// reference. The motion decides which of the two faces MuJoCo takes.                       (CON-26)
struct Twin {
  FaceFeature face{};
  Geom box[2]{};
};

template <class S>
struct ContactGeometryT {
  FeatureT<S> feature{};
  // why the features are not known; null if they are. The contact then has no derivative, which
  // matters only if it carries a force or a sensor reads it.
  const char* refusal = nullptr;
  // The contact point is the common center of two equal spheres, and therefore fixed to both geoms,
  // whatever the normal is.                                                               (ROW-15)
  bool pivot = false;
  // The contact is an input of the caller: its geoms do not move it.                      (NWT-11)
  bool fixed = false;
  std::optional<Twin> twin{};  // only if the feature is a FaceFeature

  // MuJoCo's contact
  Vec3T<S> position{}, normal{}, tangent[2]{};
  S distance = 0;
  bool flipped = false;  // MuJoCo's normal points from geom 1 to geom 0

  // The geoms touch along a line of this direction, of which MuJoCo takes an arbitrary point; zero
  // if they do not. The contact has a derivative only along motions that do not turn the line.
  // (CON-31)
  Vec3 line{};

  // distance to where other features take over, infinite if none is near
  double region = std::numeric_limits<double>::infinity();

  // depth by which the collider stopped before the optimum of two polytopes, 0 if it did not
  // (CON-36)
  double excess = 0;

  int hint_owner = -1;  // geom whose z axis directs the first tangent, -1: the world's y or z axis
  Vec3T<S> hint{};      // the vector that directs the first tangent
  S hint_length = 0;    // of its part across the normal

  // A contact of perturbed geoms: they were turned about the first contact of the pair, geom 0 by
  // `perturbation` and geom 1 by its inverse. Null if the geoms were not perturbed.        (CON-24)
  const ContactGeometryT* first = nullptr;
  Mat3T<S> perturbation{};

  int geom[2] = {-1, -1};
  int walked[2] = {-1, -1};  // where on the hulls of the geoms the search for features ended

  // GCC evaluates a constexpr constructor when it compiles, and clears all two thousand bytes of
  // the object when the program runs.
  ContactGeometryT() {}

  // The normal from geom 0 to geom 1.
  Vec3T<S> between() const { return flipped ? -normal : normal; }
};
using ContactGeometry = ContactGeometryT<double>;

// How far a contact that was computed from features is from MuJoCo's contact.
inline double mismatch(const ContactPoint& computed, const ContactGeometry& g) {
  return norm(computed.position - g.position) + norm(computed.normal - g.normal) +
         std::abs(computed.distance - g.distance);
}

}  // namespace mujacobian

// A contact as its features determine it, without tangents.
//
// Every feature (`*_feature.h`) is a struct with these functions. `std::visit` in identification.cc
// and variation.cc calls them, so that a feature without one of them does not compile:
//
//   ContactPoint rederive(feature, normal)       the contact; `normal` is MuJoCo's
//   double slack(feature, normal)                error of the conditions that define the feature
//   double agreement(feature, curved)            how well it must reproduce MuJoCo's contact;
//                                                `curved`: if the collider iterates
//   ContactPoint vary(feature, at, motion)       derivative of the contact `at` for motions of
//                                                geoms 0 and 1 about its position
//   Feature moved(feature, at, motion, source)   the feature after infinitesimal motions
//   Growth grow(feature, geom, side, component)  motion of the part of geom `side` with its size
//   std::string describe(feature)                short English name, for `mujacobian.diagnose`
//
// A feature and `vary` are templates over the numbers S. `moved` gives each of its vectors the
// derivatives with which it moves, as dual numbers, and `vary` of the moved feature then returns
// the derivative of the first derivative: see curvature.h. Only `moved` reads the model and the
// data, for parts of geoms that the first derivative does not need. docs/derivations/contacts.md.
#pragma once

#include <string>

#include "contact/geom.h"
#include "spatial/vector.h"

namespace mujacobian {

struct DataView;
struct ModelView;

// A contact, or the derivative of one.
template <class S>
struct ContactPointT {
  S distance;
  Vec3T<S> position;
  Vec3T<S> normal;  // from geom 0 to geom 1
};
using ContactPoint = ContactPointT<double>;

template <class S>
ContactPointT<S> constant(const ContactPoint& at) {
  return {at.distance, at.position, at.normal};
}

// The two geoms of a contact.
struct ContactSource {
  const ModelView& m;
  const DataView& d;
  int geom[2];
};

// How well features must reproduce MuJoCo's contact if the collider does not iterate.
constexpr double kAgreement = 1e-9;

// Motion of the part of a geom that makes a contact, with a unit of one of its sizes.      (PAR-15)
struct Growth {
  enum Kind {
    kUnsupported,  // not implemented for this feature
    kRadius,       // the surface moves towards the other geom
    kShift,        // the part is shifted
  } kind = kUnsupported;
  Vec3 shift{};  // kShift: in the frame of the geom
};

}  // namespace mujacobian

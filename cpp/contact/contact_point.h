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
//   Growth grow(feature, geom, side, component)  motion of the part of geom `side` with its size
//   std::string describe(feature)                short English name, for `mujacobian.diagnose`
//
// These functions read no model and no data, so that second derivatives can evaluate them with
// other numbers. docs/derivations/contacts.md.
#pragma once

#include <string>

#include "contact/geom.h"
#include "spatial/vector.h"

namespace mujacobian {

// A contact, or the derivative of one.
struct ContactPoint {
  double distance;
  Vec3 position;
  Vec3 normal;  // from geom 0 to geom 1
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

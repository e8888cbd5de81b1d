// Curvature: the second derivative of a contact when its two geoms move.
//
// Convention. Let c be the present position of the contact, which stays fixed in space, and let
// z = (z_0, z_1) be twelve numbers: for each geom a rotation and a translation about c, in world
// axes. Geom s moves to exp(z_s) P_s, where P_s is its pose and exp is the exponential of rigid
// motions: along z_s = e zeta, every point x of the geom has the constant velocity field
// dx/de = zeta.lin + zeta.ang x (x - c). The contact then has the distance dist(z), the position
// pos(z) and the frame exp([phi(z)]x) F(0), with phi(0) = 0. All three are functions of z, and
// ContactMap is their first derivative at z = 0. This file computes
//
//   d2(a . dist + b . pos + c . phi) / dz dz                                               (CON-39)
//
// for given a, b, c. If the motions depend on other variables x, z = z(x) with z(0) = 0, then the
// second derivative with respect to x is z'^T H z' plus the ContactMap times z''.
#pragma once

#include "contact/variation.h"
#include "layout/views.h"

namespace mujacobian {

// Cotangents of the distance, of the position and of the rotation of the frame, in world axes.
struct ContactCotangent {
  double distance;
  Vec3 position, turn;
};

// The columns of ContactMap that belong to the geoms that can move (bit s of `moves`).
struct MovedColumns {
  int first, last;
  explicit MovedColumns(int moves) : first(moves & 1 ? 0 : 6), last(moves & 2 ? 12 : 6) {}

  bool has(int side) const { return side == 0 ? first == 0 : side == 1 && last == 12; }
};

// Symmetric. Rows and columns are those of ContactMap.
struct ContactCurvature {
  double m[ContactMap::kColumns][ContactMap::kColumns];
};

// Returns the second derivative of a contact whose features are known. Like vary_units, it ignores
// the twin. Rows and columns of a geom that cannot move (bit s of `moves` is not set) are not
// written. The data must be those with which the features were identified.
ContactCurvature second_order(const ModelView& m, const DataView& d, const ContactGeometry& contact,
                              const ContactCotangent& bar, int moves);

}  // namespace mujacobian

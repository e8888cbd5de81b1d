// Variation: the derivative of a contact when its two geoms move or grow.
#pragma once

#include <optional>

#include "contact/geometry.h"

namespace mujacobian {

// The derivative of a contact; its frame turns by `turn`.
template <class S>
struct ContactVariationT {
  S distance;
  Vec3T<S> position, turn;
};
using ContactVariation = ContactVariationT<double>;

// Derivative of the contact when its geoms move by motion[0] and motion[1] about its position. T is
// S or double. Packets ignore the twin.
template <class T, class S>
ContactVariationT<S> vary(const ContactGeometryT<T>& contact, const MotionT<S> motion[2]);

// Derivative of the first contact of perturbed geoms. Sets the motions of the perturbed geoms about
// the position of this contact.                                                            (CON-24)
template <class T, class S>
ContactVariationT<S> vary_first(const ContactGeometryT<T>& contact, const MotionT<S> motion[2],
                                MotionT<S> perturbed[2]);

// The derivative as a linear map: for given features, a contact moves linearly with its geoms.
// Columns are the six unit motions of geom 0, rotations first, then those of geom 1.
struct ContactMap {
  static constexpr int kColumns = 12;
  double distance[kColumns], position[3][kColumns], turn[3][kColumns];
};

// Returns the map. Columns of a geom that cannot move (bit s of `moves` is not set) are zero. The
// map ignores the twin: visit_maps chooses between the two.
ContactMap vary_units(const ContactGeometry& contact, int moves);

// Derivative of the contact with a unit of size `component` of `geom`, which is geom `side` of the
// contact. Empty if it is not implemented for the features of the contact.                 (PAR-15)
std::optional<ContactVariation> grow(const ContactGeometry& contact, const Geom& geom, int side,
                                     int component);

// The contact over the face of its twin.                                                   (CON-26)
ContactGeometry twin_of(const ContactGeometry& contact);

// Whether MuJoCo takes the twin when the geoms move by motion[0] and motion[1]. (CON-26)
bool takes_twin(const ContactGeometry& contact, const Motion motion[2]);

}  // namespace mujacobian

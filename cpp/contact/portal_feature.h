// Feature: a facet of three pairs of vertices, which the ray from the difference of the centers
// through the origin leaves: the last portal of MuJoCo's legacy collider. The point of the facet
// nearest to the origin determines the distance and the normal, and the ray determines the
// position.                                                                             (CON-48)
#pragma once

#include "contact/simplex_feature.h"

namespace mujacobian {

template <class S>
struct PortalFeatureT {
  SimplexFeatureT<S> facet{};  // three pairs; the nearest point is between the first ones
  Vec3T<S> center[2]{};        // of the geoms
};
using PortalFeature = PortalFeatureT<double>;

// The portal as constants of type S.
template <class S>
PortalFeatureT<S> constant(const PortalFeature& f) {
  PortalFeatureT<S> result{constant<S>(f.facet), {f.center[0], f.center[1]}};
  for (int k = f.facet.size; k < 3; k++) {
    for (int s = 0; s < 2; s++) result.facet.point[s][k] = f.facet.point[s][k];
  }
  return result;
}

// The coordinates of the origin in the tetrahedron of the center and the pairs.         (CON-48)
struct PortalShares {
  double center, pair[3];
};
PortalShares portal_shares(const PortalFeature& f);

// The position of the contact.
Vec3 portal_position(const PortalFeature& f);

ContactPoint rederive(const PortalFeature& f, Vec3 normal);
double slack(const PortalFeature& f, Vec3 normal);
double agreement(const PortalFeature& f, double curved);
template <class S>
ContactPointT<S> vary(const PortalFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]);
template <class S>
PortalFeatureT<S> moved(const PortalFeature& f, const ContactPoint& at, const MotionT<S> motion[2],
                        const ContactSource& source);
Growth grow(const PortalFeature& f, const Geom& geom, int side, int component);
std::string describe(const PortalFeature& f);

}  // namespace mujacobian

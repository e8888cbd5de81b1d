#include "contact/portal_feature.h"

#include "contact/kinematics.h"

namespace mujacobian {
namespace {

// The shares of the pairs in the origin, and the dual basis of the edges from the center to the
// pairs: g_i . (w_j - w_c) = delta_ij.                                                    (CON-48)
template <class S>
struct Tetrahedron {
  Vec3T<S> dual[3];
  S share[3];
};

template <class S>
Tetrahedron<S> tetrahedron(const PortalFeatureT<S>& f) {
  const Vec3T<S> center = f.center[1] - f.center[0];
  Vec3T<S> edge[3];
  for (int k = 0; k < 3; k++) edge[k] = difference(f.facet, k) - center;
  Tetrahedron<S> t;
  const S volume = dot(cross(edge[0], edge[1]), edge[2]);
  for (int k = 0; k < 3; k++) {
    t.dual[k] = (1 / volume) * cross(edge[(k + 1) % 3], edge[(k + 2) % 3]);
    t.share[k] = -dot(t.dual[k], center);
  }
  return t;
}

}  // namespace

PortalShares portal_shares(const PortalFeature& f) {
  const Tetrahedron<double> t = tetrahedron(f);
  return {1 - t.share[0] - t.share[1] - t.share[2], {t.share[0], t.share[1], t.share[2]}};
}

Vec3 portal_position(const PortalFeature& f) {
  const PortalShares share = portal_shares(f);
  Vec3 twice = share.center * (f.center[0] + f.center[1]);
  for (int k = 0; k < 3; k++) {
    twice += share.pair[k] * (f.facet.point[0][k] + f.facet.point[1][k]);
  }
  return 0.5 * twice;
}

ContactPoint rederive(const PortalFeature& f, Vec3 towards) {
  const ContactPoint nearest = rederive(f.facet, towards);
  return {nearest.distance, portal_position(f), nearest.normal};
}

double slack(const PortalFeature&, Vec3) { return 0; }

double agreement(const PortalFeature& f, double) { return f.facet.tolerance; }

// With c = sum of b dw over the center and the pairs, d(b_k) = -g_k . c.                  (CON-49)
template <class S>
ContactPointT<S> vary(const PortalFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]) {
  ContactPointT<S> v = vary(f.facet, at, motion);
  const Tetrahedron<S> t = tetrahedron(f);
  const S center = 1 - t.share[0] - t.share[1] - t.share[2];
  const Vec3T<S> c0 = at_point(motion[0], f.center[0] - at.position);
  const Vec3T<S> c1 = at_point(motion[1], f.center[1] - at.position);
  Vec3T<S> carried = center * (c1 - c0), middle = center * (c0 + c1);
  for (int k = 0; k < 3; k++) {
    const Vec3T<S> v0 = at_point(motion[0], f.facet.point[0][k] - at.position);
    const Vec3T<S> v1 = at_point(motion[1], f.facet.point[1][k] - at.position);
    carried += t.share[k] * (v1 - v0);
    middle += t.share[k] * (v0 + v1);
  }
  const Vec3T<S> between = f.center[0] + f.center[1];
  for (int k = 0; k < 3; k++) {
    const S change = -dot(t.dual[k], carried);
    middle += change * (f.facet.point[0][k] + f.facet.point[1][k] - between);
  }
  v.position = 0.5 * middle;
  return v;
}

template <class S>
PortalFeatureT<S> moved(const PortalFeature& f, const ContactPoint& at, const MotionT<S> motion[2],
                        const ContactSource& source) {
  PortalFeatureT<S> result{moved(f.facet, at, motion, source), {}};
  for (int s = 0; s < 2; s++) {
    result.center[s] = moved_point(motion[s], at.position, f.center[s]);
    for (int k = f.facet.size; k < 3; k++) {
      result.facet.point[s][k] = moved_point(motion[s], at.position, f.facet.point[s][k]);
    }
  }
  return result;
}

template ContactPoint vary(const PortalFeature&, const ContactPoint&, const Motion[2]);
template ContactPointT<Packet> vary(const PortalFeatureT<Packet>&, const ContactPointT<Packet>&,
                                    const MotionT<Packet>[2]);
template ContactPointT<ContactDual> vary(const PortalFeatureT<ContactDual>&,
                                         const ContactPointT<ContactDual>&,
                                         const MotionT<ContactDual>[2]);
template PortalFeatureT<ContactDual> moved(const PortalFeature&, const ContactPoint&,
                                           const MotionT<ContactDual>[2], const ContactSource&);

Growth grow(const PortalFeature&, const Geom&, int, int) { return {}; }

std::string describe(const PortalFeature&) { return "portal of the legacy collider"; }

}  // namespace mujacobian

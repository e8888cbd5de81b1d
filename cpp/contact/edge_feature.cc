#include "contact/edge_feature.h"

#include "contact/center_pair.h"
#include "contact/kinematics.h"

namespace mujacobian {

ContactPoint rederive(const EdgeFeature& f, Vec3) {
  Vec3 normal = cross(f.axis[0], f.axis[1]);
  normal = (f.sign / norm(normal)) * normal;
  return {dot(normal, f.point[1] - f.point[0]), 0.5 * (f.point[0] + f.point[1]), normal};
}

double slack(const EdgeFeature&, Vec3) { return 0; }

double agreement(const EdgeFeature&, double) { return kAgreement; }

// The normal turns with both edges, and the nearest points slide along them.
ContactPoint vary(const EdgeFeature& f, const ContactPoint& at, const Motion motion[2]) {
  const CenterPair lines{.center = {f.point[0], f.point[1]},
                         .slide = {CenterPair::kLine, CenterPair::kLine},
                         .axis = {f.axis[0], f.axis[1]}};
  Vec3 moved[2];
  vary_centers(lines, at.position, motion, moved);
  Vec3 product = cross(f.axis[0], f.axis[1]);
  Vec3 change = cross(cross(motion[0].ang, f.axis[0]), f.axis[1]) +
                cross(f.axis[0], cross(motion[1].ang, f.axis[1]));
  ContactPoint v;
  v.distance = dot(at.normal, moved[1] - moved[0]);
  v.position = 0.5 * (moved[0] + moved[1]);
  v.normal = (f.sign / norm(product)) * across(change, at.normal);
  return v;
}

Growth grow(const EdgeFeature& f, const Geom& geom, int side, int component) {
  return {Growth::kShift, surface_growth(geom, geom.to_local(f.point[side]), component)};
}

std::string describe(const EdgeFeature&) { return "edge on edge"; }

}  // namespace mujacobian

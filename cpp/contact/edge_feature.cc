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

// The normal turns with both edges, and the nearest points slide along them, except for their ends.
ContactPoint vary(const EdgeFeature& f, const ContactPoint& at, const Motion motion[2]) {
  auto slide = [&](int s) { return f.at_end[s] ? CenterPair::kFixed : CenterPair::kLine; };
  const CenterPair lines{.center = {f.point[0], f.point[1]},
                         .slide = {slide(0), slide(1)},
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
  // the vector between ends of edges need not be along the normal
  if (f.at_end[0] || f.at_end[1]) v.distance += dot(v.normal, f.point[1] - f.point[0]);
  return v;
}

Growth grow(const EdgeFeature& f, const Geom& geom, int side, int component) {
  return {Growth::kShift, surface_growth(geom, geom.to_local(f.point[side]), component)};
}

std::string describe(const EdgeFeature& f) {
  return f.at_end[0] || f.at_end[1] ? "end of edge on edge" : "edge on edge";
}

}  // namespace mujacobian

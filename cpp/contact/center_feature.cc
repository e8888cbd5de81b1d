#include "contact/center_feature.h"

#include <cmath>

#include "contact/kinematics.h"

namespace mujacobian {
namespace {

const char* center_name(CenterPair::Slide slide) {
  switch (slide) {
    case CenterPair::kFixed:
      return "point";
    case CenterPair::kLine:
      return "line";
    case CenterPair::kCircle:
      return "rim";
    case CenterPair::kSegment:
      return "segment";
  }
  return "";
}

}  // namespace

ContactPoint rederive(const CenterFeature& f, Vec3) {
  const CenterPair& c = f.pair;
  Vec3 span = c.center[1] - c.center[0];
  double length = norm(span);
  Vec3 normal = (1 / length) * span;
  double distance = length - f.radius[0] - f.radius[1];
  return {distance, c.center[0] + (f.radius[0] + distance / 2) * normal, normal};
}

// How far sliding centers are from being nearest to one another.
double slack(const CenterFeature& f, Vec3) {
  const CenterPair& c = f.pair;
  Vec3 span = c.center[1] - c.center[0];
  double sum = 0;
  for (int s = 0; s < 2; s++) {
    if (c.slide[s] == CenterPair::kLine) sum += std::abs(dot(c.axis[s], span));
  }
  return sum;
}

double agreement(const CenterFeature&, double) { return kAgreement; }

ContactPoint vary(const CenterFeature& f, const ContactPoint& at, const Motion motion[2]) {
  const CenterPair& c = f.pair;
  const Vec3 n = at.normal;
  Vec3 moved[2];
  if (f.segment) moved[0] = segment_velocity(*f.segment, at.position, motion);
  vary_centers(c, at.position, motion, moved);
  double length = norm(c.center[1] - c.center[0]);
  Vec3 u = moved[1] - moved[0];
  ContactPoint v;
  v.distance = dot(n, u);
  v.normal = (1 / length) * across(u, n);
  v.position = moved[0] + (f.radius[0] + at.distance / 2) * v.normal + (v.distance / 2) * n;
  return v;
}

Growth grow(const CenterFeature& f, const Geom& geom, int side, int component) {
  // the side of a cylinder is round, too
  if (f.radius[side] > 0 && component == 0) return {Growth::kRadius};
  if (f.segment) return {};
  return {Growth::kShift, surface_growth(geom, geom.to_local(f.pair.center[side]), component)};
}

std::string describe(const CenterFeature& f) {
  return std::string(center_name(f.pair.slide[0])) + " on " + center_name(f.pair.slide[1]);
}

}  // namespace mujacobian

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
    case CenterPair::kMiddle:
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

template <class S>
ContactPointT<S> vary(const CenterFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]) {
  const CenterPairT<S>& c = f.pair;
  const Vec3T<S> n = at.normal;
  Vec3T<S> moved[2];
  if (f.segment) moved[0] = segment_velocity(*f.segment, at.position, motion);
  vary_centers(c, at.position, motion, moved);
  const S length = norm(c.center[1] - c.center[0]);
  Vec3T<S> u = moved[1] - moved[0];
  ContactPointT<S> v;
  v.distance = dot(n, u);
  v.normal = (1 / length) * across(u, n);
  v.position = moved[0] + (f.radius[0] + at.distance / 2) * v.normal + (v.distance / 2) * n;
  return v;
}

template <class S>
CenterFeatureT<S> moved(const CenterFeature& f, const ContactPoint& at, const MotionT<S> motion[2],
                        const ContactSource& source) {
  CenterFeatureT<S> result{.radius = {f.radius[0], f.radius[1]}};
  Vec3T<S> velocities[2];
  if (f.segment) {
    velocities[0] = segment_velocity<S>(constant<S>(*f.segment), at.position, motion);
    result.segment = moved(*f.segment, at.position, motion, source);
  }
  vary_centers<S>(constant<S>(f.pair), at.position, motion, velocities);
  result.pair = moved<S>(f.pair, at.position, motion, velocities);
  return result;
}

template ContactPoint vary(const CenterFeature&, const ContactPoint&, const Motion[2]);
template ContactPointT<Packet> vary(const CenterFeatureT<Packet>&, const ContactPointT<Packet>&,
                                    const MotionT<Packet>[2]);
template ContactPointT<ContactDual> vary(const CenterFeatureT<ContactDual>&,
                                         const ContactPointT<ContactDual>&,
                                         const MotionT<ContactDual>[2]);
template CenterFeatureT<ContactDual> moved(const CenterFeature&, const ContactPoint&,
                                           const MotionT<ContactDual>[2], const ContactSource&);

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

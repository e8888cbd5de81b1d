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

namespace {

// The lines along which the nearest points slide, except for ends of edges.
template <class S>
CenterPairT<S> edge_lines(const EdgeFeatureT<S>& f) {
  auto slide = [&](int s) { return f.at_end[s] ? CenterSlide::kFixed : CenterSlide::kLine; };
  return {.center = {f.point[0], f.point[1]},
          .slide = {slide(0), slide(1)},
          .axis = {f.axis[0], f.axis[1]}};
}

}  // namespace

// The normal turns with both edges.
template <class S>
ContactPointT<S> vary(const EdgeFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]) {
  const CenterPairT<S> lines = edge_lines(f);
  Vec3T<S> moved[2];
  vary_centers(lines, at.position, motion, moved);
  Vec3T<S> product = cross(f.axis[0], f.axis[1]);
  Vec3T<S> change = cross(cross(motion[0].ang, f.axis[0]), f.axis[1]) +
                    cross(f.axis[0], cross(motion[1].ang, f.axis[1]));
  ContactPointT<S> v;
  v.distance = dot(at.normal, moved[1] - moved[0]);
  v.position = 0.5 * (moved[0] + moved[1]);
  v.normal = (f.sign / norm(product)) * across(change, at.normal);
  // the vector between ends of edges need not be along the normal
  if (f.at_end[0] || f.at_end[1]) {
    v.distance = v.distance + dot(v.normal, f.point[1] - f.point[0]);
  }
  return v;
}

template <class S>
EdgeFeatureT<S> moved(const EdgeFeature& f, const ContactPoint& at, const MotionT<S> motion[2],
                      const ContactSource&) {
  EdgeFeatureT<S> result = constant<S>(f);
  Vec3T<S> velocities[2];
  vary_centers<S>(edge_lines(result), at.position, motion, velocities);
  for (int s = 0; s < 2; s++) {
    result.point[s] += velocities[s];
    result.axis[s] = turned(motion[s], f.axis[s]);
  }
  return result;
}

template ContactPoint vary(const EdgeFeature&, const ContactPoint&, const Motion[2]);
template ContactPointT<Packet> vary(const EdgeFeatureT<Packet>&, const ContactPointT<Packet>&,
                                    const MotionT<Packet>[2]);
template ContactPointT<ContactDual> vary(const EdgeFeatureT<ContactDual>&,
                                         const ContactPointT<ContactDual>&,
                                         const MotionT<ContactDual>[2]);
template EdgeFeatureT<ContactDual> moved(const EdgeFeature&, const ContactPoint&,
                                         const MotionT<ContactDual>[2], const ContactSource&);

Growth grow(const EdgeFeature& f, const Geom& geom, int side, int component) {
  return {Growth::kShift, surface_growth(geom, geom.to_local(f.point[side]), component)};
}

std::string describe(const EdgeFeature& f) {
  return f.at_end[0] || f.at_end[1] ? "end of edge on edge" : "edge on edge";
}

}  // namespace mujacobian

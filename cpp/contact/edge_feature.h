// Feature: two edges. The normal is perpendicular to both, and the contact is between their nearest
// points. (CON-9)
#pragma once

#include "contact/contact_point.h"

namespace mujacobian {

template <class S>
struct EdgeFeatureT {
  Vec3T<S> point[2]{};              // a point of each edge, nearest to the other edge
  Vec3T<S> axis[2]{};               // unit directions
  bool at_end[2] = {false, false};  // the point is an end of its edge                     (CON-32)
  double sign = 1;                  // normal = sign (axis[0] x axis[1]) / |.|
};
using EdgeFeature = EdgeFeatureT<double>;

// The edges as constants of type S.
template <class S>
EdgeFeatureT<S> constant(const EdgeFeature& f) {
  return {.point = {f.point[0], f.point[1]},
          .axis = {f.axis[0], f.axis[1]},
          .at_end = {f.at_end[0], f.at_end[1]},
          .sign = f.sign};
}

ContactPoint rederive(const EdgeFeature& f, Vec3 normal);
double slack(const EdgeFeature& f, Vec3 normal);
double agreement(const EdgeFeature& f, double curved);
template <class S>
ContactPointT<S> vary(const EdgeFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]);
template <class S>
EdgeFeatureT<S> moved(const EdgeFeature& f, const ContactPoint& at, const MotionT<S> motion[2],
                      const ContactSource& source);
Growth grow(const EdgeFeature& f, const Geom& geom, int side, int component);
std::string describe(const EdgeFeature& f);

}  // namespace mujacobian

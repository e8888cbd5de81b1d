// Feature: two spheres around centers that are fixed to their bodies or slide along them.  (CON-2)
#pragma once

#include <optional>

#include "contact/center_pair.h"
#include "contact/contact_point.h"
#include "contact/segment_point.h"

namespace mujacobian {

template <class S>
struct CenterFeatureT {
  CenterPairT<S> pair{};
  double radius[2] = {0, 0};
  std::optional<SegmentPointT<S>> segment{};  // center 0, if its slide is kSegment
};
using CenterFeature = CenterFeatureT<double>;

// The centers as constants of type S.
template <class S>
CenterFeatureT<S> constant(const CenterFeature& f) {
  CenterFeatureT<S> result{.pair = constant<S>(f.pair), .radius = {f.radius[0], f.radius[1]}};
  if (f.segment) result.segment = constant<S>(*f.segment);
  return result;
}

ContactPoint rederive(const CenterFeature& f, Vec3 normal);
double slack(const CenterFeature& f, Vec3 normal);
double agreement(const CenterFeature& f, double curved);
template <class S>
ContactPointT<S> vary(const CenterFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]);
template <class S>
CenterFeatureT<S> moved(const CenterFeature& f, const ContactPoint& at, const MotionT<S> motion[2],
                        const ContactSource& source);
Growth grow(const CenterFeature& f, const Geom& geom, int side, int component);
std::string describe(const CenterFeature& f);

}  // namespace mujacobian

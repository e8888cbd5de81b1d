// Feature: two spheres around centers that are fixed to their bodies or slide along them.  (CON-2)
#pragma once

#include <optional>

#include "contact/center_pair.h"
#include "contact/contact_point.h"
#include "contact/segment_point.h"

namespace mujacobian {

struct CenterFeature {
  CenterPair pair{};
  double radius[2] = {0, 0};
  std::optional<SegmentPoint> segment{};  // center 0, if its slide is kSegment
};

ContactPoint rederive(const CenterFeature& f, Vec3 normal);
double slack(const CenterFeature& f, Vec3 normal);
double agreement(const CenterFeature& f, double curved);
ContactPoint vary(const CenterFeature& f, const ContactPoint& at, const Motion motion[2]);
Growth grow(const CenterFeature& f, const Geom& geom, int side, int component);
std::string describe(const CenterFeature& f);

}  // namespace mujacobian

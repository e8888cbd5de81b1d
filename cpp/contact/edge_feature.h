// Feature: two edges. The normal is perpendicular to both, and the contact is between their nearest
// points. (CON-9)
#pragma once

#include "contact/contact_point.h"

namespace mujacobian {

struct EdgeFeature {
  Vec3 point[2]{};                  // a point of each edge, nearest to the other edge
  Vec3 axis[2]{};                   // unit directions
  bool at_end[2] = {false, false};  // the point is an end of its edge                     (CON-32)
  double sign = 1;                  // normal = sign (axis[0] x axis[1]) / |.|
};

ContactPoint rederive(const EdgeFeature& f, Vec3 normal);
double slack(const EdgeFeature& f, Vec3 normal);
double agreement(const EdgeFeature& f, double curved);
ContactPoint vary(const EdgeFeature& f, const ContactPoint& at, const Motion motion[2]);
Growth grow(const EdgeFeature& f, const Geom& geom, int side, int component);
std::string describe(const EdgeFeature& f);

}  // namespace mujacobian

// Feature: the nearest or deepest points of two convex geoms, which have a common normal. (CON-14)
#pragma once

#include "contact/contact_point.h"

namespace mujacobian {

// The point of one geom: it follows the common normal, and slides along the straight directions of
// its part of the surface.
struct SupportSide {
  Vec3 point{};       // on the geom, or on its core if it is a core with a radius
  double radius = 0;  // around the core
  Mat3 follow{};      // d(point)/d(outward normal): zero for vertices, edges, faces and cores
  Vec3 slide[2]{};    // straight directions: one of an edge or axis, two of a face
  int slides = 0;     // their number
};

struct SupportFeature {
  SupportSide side[2]{};
};

// Solution of (CON-14): changes of normal, points and distance.
struct SupportChange {
  Vec3 normal, point[2];
  double distance;  // NaN if the system is singular
};

// Solves (CON-14) if the material points at the two supports move by `moved` and their geoms turn
// by `turn`. `gap` is the error of the optimality condition, which the solution removes.
SupportChange support_change(const SupportFeature& f, Vec3 normal, double distance,
                             const Vec3 moved[2], const Vec3 turn[2], Vec3 gap);

// The same for motions of the two geoms about `from`, at the optimum.
SupportChange support_change(const SupportFeature& f, Vec3 normal, Vec3 from,
                             const Motion motion[2]);

ContactPoint rederive(const SupportFeature& f, Vec3 normal);
double slack(const SupportFeature& f, Vec3 normal);
double agreement(const SupportFeature& f, double curved);
ContactPoint vary(const SupportFeature& f, const ContactPoint& at, const Motion motion[2]);
Growth grow(const SupportFeature& f, const Geom& geom, int side, int component);
std::string describe(const SupportFeature& f);

}  // namespace mujacobian

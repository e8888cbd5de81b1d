// Feature: the nearest or deepest points of two convex geoms, which have a common normal. (CON-14)
#pragma once

#include "contact/contact_point.h"

namespace mujacobian {

// The point of one geom: it follows the common normal, and slides along the straight directions of
// its part of the surface.
template <class S>
struct SupportSideT {
  Vec3T<S> point{};     // on the geom, or on its core if it is a core with a radius
  double radius = 0;    // around the core
  Mat3T<S> follow{};    // d(point)/d(outward normal): zero for vertices, edges, faces and cores
  Vec3T<S> slide[2]{};  // straight directions: one of an edge or axis, two of a face
  int slides = 0;       // their number
};
using SupportSide = SupportSideT<double>;

template <class S>
struct SupportFeatureT {
  SupportSideT<S> side[2]{};
};
using SupportFeature = SupportFeatureT<double>;

// Solution of (CON-14): changes of normal, points and distance.
template <class S>
struct SupportChangeT {
  Vec3T<S> normal, point[2];
  S distance;  // NaN if the system is singular
};
using SupportChange = SupportChangeT<double>;

// Solves (CON-14) if the material points at the two supports move by `moved` and their geoms turn
// by `turn`. `gap` is the error of the optimality condition, which the solution removes.
template <class S>
SupportChangeT<S> support_change(const SupportFeatureT<S>& f, Vec3T<S> normal, S distance,
                                 const Vec3T<S> moved[2], const Vec3T<S> turn[2], Vec3T<S> gap);

// The same for motions of the two geoms about `from`, at the optimum.
template <class S>
SupportChangeT<S> support_change(const SupportFeatureT<S>& f, Vec3T<S> normal, Vec3T<S> from,
                                 const MotionT<S> motion[2]);

// The supports as constants of type S.
template <class S>
SupportSideT<S> constant(const SupportSide& side) {
  return {.point = side.point,
          .radius = side.radius,
          .follow = side.follow,
          .slide = {side.slide[0], side.slide[1]},
          .slides = side.slides};
}
template <class S>
SupportFeatureT<S> constant(const SupportFeature& f) {
  return {{constant<S>(f.side[0]), constant<S>(f.side[1])}};
}

// The supports after infinitesimal motions of their geoms about `from`; `normal` is the common one.
template <class S>
SupportFeatureT<S> moved(const SupportFeature& f, Vec3 normal, Vec3 from,
                         const MotionT<S> motion[2], const ContactSource& source);

ContactPoint rederive(const SupportFeature& f, Vec3 normal);
double slack(const SupportFeature& f, Vec3 normal);
double agreement(const SupportFeature& f, double curved);
template <class S>
ContactPointT<S> vary(const SupportFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]);
template <class S>
SupportFeatureT<S> moved(const SupportFeature& f, const ContactPoint& at,
                         const MotionT<S> motion[2], const ContactSource& source) {
  return moved(f, at.normal, at.position, motion, source);
}
Growth grow(const SupportFeature& f, const Geom& geom, int side, int component);
std::string describe(const SupportFeature& f);

}  // namespace mujacobian

// Feature: a point of one geom, or a sphere around it, over a face of the other geom.       (CON-1)
#pragma once

#include <variant>

#include "contact/contact_point.h"
#include "contact/segment_point.h"

namespace mujacobian {

// The ways in which the point moves. `other` is the geom that has the point, `owner` the geom that
// has the face.

// The point is fixed to the other geom.
struct FixedPoint {};

// The lowest point of an ellipsoid.                                                        (CON-7)
template <class S>
struct EllipsoidPointT {
  GeomT<S> ellipsoid{};
};
using EllipsoidPoint = EllipsoidPointT<double>;

// A point of a cylinder that turns about its axis with the direction of steepest descent.   (CON-8)
template <class S>
struct CylinderPointT {
  GeomT<S> cylinder{};
};
using CylinderPoint = CylinderPointT<double>;

// The point where an edge of the other geom crosses the plane of a side of the face.       (CON-10)
template <class S>
struct EdgeCrossingT {
  Vec3T<S> along{};  // direction of the edge
  Vec3T<S> side{};   // normal of the plane
};
using EdgeCrossing = EdgeCrossingT<double>;

// The point of a face of the other geom that is over a corner of the owner's face.         (CON-11)
template <class S>
struct CornerPointT {
  Vec3T<S> corner{};
  Vec3T<S> face{};  // normal of the other's face
};
using CornerPoint = CornerPointT<double>;

// The projection of a point of the owner onto a face of the other geom. The point is a vertex, or
// an edge crosses the plane of a side there.                                               (CON-13)
template <class S>
struct FootPointT {
  Vec3T<S> above{};  // the point of the owner
  Vec3T<S> base{};   // normal of the other's face
  Vec3T<S> along{};  // direction of the edge, zero for a vertex
  Vec3T<S> side{};   // normal of the plane
};
using FootPoint = FootPointT<double>;

// A vertex of a polygon of the other geom that the sides of the owner's face have clipped. (CON-23)
template <class S>
struct ClippedPointT {
  Vec3T<S> motion[6]{};    // see ClippedVertex
  int face[2] = {-1, -1};  // of the owner, of the other geom: see find_clipped
};
using ClippedPoint = ClippedPointT<double>;

// The projection, onto a face of the other geom, of a vertex of a polygon of the owner that the
// sides of this face have clipped.                                                (CON-13, CON-23)
template <class S>
struct ClippedFootT {
  Vec3T<S> above{};        // the vertex
  Vec3T<S> base{};         // normal of the other's face
  Vec3T<S> motion[6]{};    // see ClippedVertex
  int face[2] = {-1, -1};  // of the other geom, of the owner: see find_clipped
};
using ClippedFoot = ClippedFootT<double>;

// The last one is a point of a capsule or cylinder along the face.
template <class S>
using FaceSlideT = std::variant<FixedPoint, EllipsoidPointT<S>, CylinderPointT<S>, EdgeCrossingT<S>,
                                CornerPointT<S>, FootPointT<S>, ClippedPointT<S>, ClippedFootT<S>,
                                SegmentPointT<S>>;
using FaceSlide = FaceSlideT<double>;

template <class S>
struct FaceFeatureT {
  int owner = 0;       // the geom of the contact that has the face, 0 or 1
  Vec3T<S> outward{};  // unit normal of the face
  Vec3T<S> center{};   // the point
  double radius = 0;   // of the sphere around it
  S distance = 0;      // of the sphere from the face
  FaceSlideT<S> slide{};

  // Direction from the point to the position of the contact: the normal of the face, or for the
  // points of manifolds before MuJoCo 3.17 the normal of the other's face. (CON-12)
  Vec3T<S> shift = outward;
  bool shift_with_other = false;  // it turns with the other geom
};
using FaceFeature = FaceFeatureT<double>;

// The point and the face as constants of type S.
template <class S>
FaceFeatureT<S> constant(const FaceFeature& f);

// A sphere around `center` over a face through `on_face`. The face defines the distance up to its
// `flatness`; MuJoCo's distance `found` is taken where they agree.
FaceFeature sphere_over_face(int owner, Vec3 outward, Vec3 on_face, Vec3 center, double radius,
                             double flatness, double found);

ContactPoint rederive(const FaceFeature& f, Vec3 normal);
double slack(const FaceFeature& f, Vec3 normal);
double agreement(const FaceFeature& f, double curved);
template <class S>
ContactPointT<S> vary(const FaceFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]);
template <class S>
FaceFeatureT<S> moved(const FaceFeature& f, const ContactPoint& at, const MotionT<S> motion[2],
                      const ContactSource& source);
Growth grow(const FaceFeature& f, const Geom& geom, int side, int component);
std::string describe(const FaceFeature& f);

}  // namespace mujacobian

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
struct EllipsoidPoint {
  Geom ellipsoid{};
};

// A point of a cylinder that turns about its axis with the direction of steepest descent.   (CON-8)
struct CylinderPoint {
  Geom cylinder{};
};

// The point where an edge of the other geom crosses the plane of a side of the face.       (CON-10)
struct EdgeCrossing {
  Vec3 along{};  // direction of the edge
  Vec3 side{};   // normal of the plane
};

// The point of a face of the other geom that is over a corner of the owner's face.         (CON-11)
struct CornerPoint {
  Vec3 corner{};
  Vec3 face{};  // normal of the other's face
};

// The projection of a point of the owner onto a face of the other geom. The point is a vertex, or
// an edge crosses the plane of a side there.                                               (CON-13)
struct FootPoint {
  Vec3 above{};  // the point of the owner
  Vec3 base{};   // normal of the other's face
  Vec3 along{};  // direction of the edge, zero for a vertex
  Vec3 side{};   // normal of the plane
};

// A vertex of a polygon of the other geom that the sides of the owner's face have clipped. (CON-23)
struct ClippedPoint {
  Vec3 motion[6]{};  // see ClippedVertex
};

// The projection, onto a face of the other geom, of a vertex of a polygon of the owner that the
// sides of this face have clipped.                                                (CON-13, CON-23)
struct ClippedFoot {
  Vec3 above{};  // the vertex
  Vec3 base{};   // normal of the other's face
  Vec3 motion[6]{};
};

// The last one is a point of a capsule or cylinder along the face.
using FaceSlide = std::variant<FixedPoint, EllipsoidPoint, CylinderPoint, EdgeCrossing, CornerPoint,
                               FootPoint, ClippedPoint, ClippedFoot, SegmentPoint>;

struct FaceFeature {
  int owner = 0;        // the geom of the contact that has the face, 0 or 1
  Vec3 outward{};       // unit normal of the face
  Vec3 center{};        // the point
  double radius = 0;    // of the sphere around it
  double distance = 0;  // of the sphere from the face
  FaceSlide slide{};

  // Direction from the point to the position of the contact: the normal of the face, or for the
  // points of manifolds before MuJoCo 3.17 the normal of the other's face. (CON-12)
  Vec3 shift = outward;
  bool shift_with_other = false;  // it turns with the other geom
};

// A sphere around `center` over a face through `on_face`. The face defines the distance up to its
// `flatness`; MuJoCo's distance `found` is taken where they agree.
FaceFeature sphere_over_face(int owner, Vec3 outward, Vec3 on_face, Vec3 center, double radius,
                             double flatness, double found);

ContactPoint rederive(const FaceFeature& f, Vec3 normal);
double slack(const FaceFeature& f, Vec3 normal);
double agreement(const FaceFeature& f, double curved);
ContactPoint vary(const FaceFeature& f, const ContactPoint& at, const Motion motion[2]);
Growth grow(const FaceFeature& f, const Geom& geom, int side, int component);
std::string describe(const FaceFeature& f);

}  // namespace mujacobian

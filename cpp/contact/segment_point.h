// A point of a capsule or cylinder that lies along a face of the other geom: on its segment, or on
// the line of its surface that faces the other geom.                               (CON-15, CON-16)
#pragma once

#include "contact/center_pair.h"
#include "contact/support_feature.h"

namespace mujacobian {

// Where along the segment the point is.
enum class SegmentRule {
  kStart,  // at a constant distance from its start
  kPlane,  // in a plane that is fixed to the other geom
  kStep,   // ahead of its start by a constant length along an axis of the other geom
};

// Direction from the segment to the line of the surface.                                  (CON-16)
enum class SegmentDirection {
  kFaceNormal,  // fixed to the other geom: towards its face
  kNearest,     // between the points of `nearest`
  kRim,         // the common normal of the supports `rim`, one of which is on a rim
};

template <class S>
struct SegmentPointT {
  using Rule = SegmentRule;
  using Direction = SegmentDirection;
  using enum SegmentRule;
  using enum SegmentDirection;

  int owner = 0;     // the geom of the contact that has the segment, 0 or 1
  Vec3T<S> axis{};   // of the segment
  Vec3T<S> start{};  // fixed to the owner, or center 0 of `nearest` if `nearest_start` is set
  Vec3T<S> point{};  // ahead of the start, along the segment
  bool nearest_start = false;

  Rule rule = kStart;
  Vec3T<S> side{};      // kPlane: normal of the plane; kStep: the axis; fixed to the other geom
  bool to_end = false;  // kStep: the length is that from center 1 of `nearest` to the edge's end
  double share = 1;     // kPlane: 1/2 if an end of the segment is in the plane            (CON-27)

  // A point of the surface is off the segment by `radius` times the part of `towards` across it,
  // which cylinders make a unit vector. The radius is zero for a point of the segment itself.
  double radius = 0;
  bool unit = false;
  Direction direction = kFaceNormal;
  Vec3T<S> towards{};

  // nearest points of the segment (center 0) and of the other geom (center 1)
  CenterPairT<S> nearest{};
  // kRim: the supports of the segment's geom (side 0) and of the other geom (side 1)
  SupportFeatureT<S> rim{};
};
using SegmentPoint = SegmentPointT<double>;

// Vector from the segment to the line of the surface.
template <class S>
Vec3T<S> surface_offset(const SegmentPointT<S>& p) {
  const Vec3T<S> off = p.towards - dot(p.towards, p.axis) * p.axis;
  return (p.unit ? p.radius / norm(off) : S(p.radius)) * off;
}

// Velocity of the point for motions about `from`.
template <class S>
Vec3T<S> segment_velocity(const SegmentPointT<S>& p, Vec3T<S> from, const MotionT<S> motion[2]);

// The point as constants of type S.
template <class S>
SegmentPointT<S> constant(const SegmentPoint& p);

// The point after infinitesimal motions of the two geoms about `from`.
template <class S>
SegmentPointT<S> moved(const SegmentPoint& p, Vec3 from, const MotionT<S> motion[2],
                       const ContactSource& source);

// Short English names of the rule and of the direction, for `mujacobian.diagnose`.
const char* rule_name(const SegmentPoint& p);
const char* direction_name(const SegmentPoint& p);

}  // namespace mujacobian

// A point of a capsule or cylinder that lies along a face of the other geom: on its segment, or on
// the line of its surface that faces the other geom.                               (CON-15, CON-16)
#pragma once

#include "contact/center_pair.h"
#include "contact/support_feature.h"

namespace mujacobian {

struct SegmentPoint {
  // Where along the segment the point is.
  enum Rule {
    kStart,  // at a constant distance from its start
    kPlane,  // in a plane that is fixed to the other geom
    kStep,   // ahead of its start by a constant length along an axis of the other geom
  };
  // Direction from the segment to the line of the surface.                                (CON-16)
  enum Direction {
    kFaceNormal,  // fixed to the other geom: towards its face
    kNearest,     // between the points of `nearest`
    kRim,         // the common normal of the supports `rim`, one of which is on a rim
  };

  int owner = 0;  // the geom of the contact that has the segment, 0 or 1
  Vec3 axis{};    // of the segment
  Vec3 start{};   // fixed to the owner, or center 0 of `nearest` if `nearest_start` is set
  Vec3 point{};   // ahead of the start, along the segment
  bool nearest_start = false;

  Rule rule = kStart;
  Vec3 side{};          // kPlane: normal of the plane; kStep: the axis; fixed to the other geom
  bool to_end = false;  // kStep: the length is that from center 1 of `nearest` to the edge's end
  double share = 1;     // kPlane: 1/2 if an end of the segment is in the plane            (CON-27)

  // A point of the surface is off the segment by `radius` times the part of `towards` across it,
  // which cylinders make a unit vector. The radius is zero for a point of the segment itself.
  double radius = 0;
  bool unit = false;
  Direction direction = kFaceNormal;
  Vec3 towards{};

  // nearest points of the segment (center 0) and of the other geom (center 1)
  CenterPair nearest{};
  // kRim: the supports of the segment's geom (side 0) and of the other geom (side 1)
  SupportFeature rim{};
};

// Vector from the segment to the line of the surface.
inline Vec3 surface_offset(const SegmentPoint& p) {
  const Vec3 off = p.towards - dot(p.towards, p.axis) * p.axis;
  return (p.unit ? p.radius / norm(off) : p.radius) * off;
}

// Velocity of the point for motions about `from`.
Vec3 segment_velocity(const SegmentPoint& p, Vec3 from, const Motion motion[2]);

// Short English names of the rule and of the direction, for `mujacobian.diagnose`.
const char* rule_name(const SegmentPoint& p);
const char* direction_name(const SegmentPoint& p);

}  // namespace mujacobian

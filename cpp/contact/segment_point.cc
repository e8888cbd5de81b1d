#include "contact/segment_point.h"

#include "contact/kinematics.h"

namespace mujacobian {
namespace {

// Velocity of `towards`. `nearest` holds the velocities of the nearest points.
Vec3 direction_velocity(const SegmentPoint& p, Vec3 from, const Motion motion[2],
                        const Vec3 nearest[2]) {
  const Vec3 n = p.towards;
  switch (p.direction) {
    case SegmentPoint::kFaceNormal:
      break;
    case SegmentPoint::kNearest: {
      Vec3 span = p.nearest.center[1] - p.nearest.center[0];
      return (1 / dot(span, n)) * across(nearest[1] - nearest[0], n);
    }
    case SegmentPoint::kRim:
      return support_change(p.rim, n, from, motion).normal;
  }
  return cross(motion[1].ang, n);
}

// Velocity of the vector from the segment to the line of the surface.                      (CON-16)
Vec3 offset_velocity(const SegmentPoint& p, Vec3 from, const Motion motion[2],
                     const Vec3 nearest[2]) {
  Vec3 a = p.axis, da = cross(motion[0].ang, a);
  Vec3 n = p.towards, dn = direction_velocity(p, from, motion, nearest);
  Vec3 off = across(n, a), change = dn - (dot(dn, a) + dot(n, da)) * a - dot(n, a) * da;
  if (p.unit) {
    double length = norm(off);
    change = (1 / length) * across(change, (1 / length) * off);
  }
  return p.radius * change;
}

}  // namespace

Vec3 segment_velocity(const SegmentPoint& p, Vec3 from, const Motion both[2]) {
  const Motion motion[2] = {both[p.owner], both[1 - p.owner]};
  Vec3 nearest[2], a = p.axis;
  if (p.nearest_start || p.to_end || p.direction == SegmentPoint::kNearest) {
    vary_centers(p.nearest, from, motion, nearest);
  }

  // velocity at a constant distance from the start
  Vec3 start = p.nearest_start ? nearest[0] : velocity(motion[0], from, p.start);
  Vec3 moved = start + dot(p.point - p.start, a) * cross(motion[0].ang, a);
  if (p.radius > 0) {
    Vec3 off = surface_offset(p);
    moved = velocity(motion[0], from, p.point - off) + offset_velocity(p, from, motion, nearest);
  }
  if (p.rule == SegmentPoint::kStart) return moved;

  // how far the point must advance, from velocities relative to the other geom             (CON-15)
  auto relative = [&](Vec3 v, Vec3 at) { return dot(p.side, v - velocity(motion[1], from, at)); };
  double advance = -relative(moved, p.point);
  if (p.rule == SegmentPoint::kStep) advance += relative(start, p.start);
  if (p.to_end) advance -= relative(nearest[1], p.nearest.center[1]);
  return moved + (p.share * advance / dot(p.side, a)) * a;
}

const char* rule_name(const SegmentPoint& p) {
  switch (p.rule) {
    case SegmentPoint::kStart:
      return "point of segment";
    case SegmentPoint::kPlane:
      return "segment cut by side";
    case SegmentPoint::kStep:
      return "segment cut by width";
  }
  return "";
}

const char* direction_name(const SegmentPoint& p) {
  switch (p.direction) {
    case SegmentPoint::kFaceNormal:
      return "face normal";
    case SegmentPoint::kNearest:
      return "nearest points";
    case SegmentPoint::kRim:
      return "normal at a rim";
  }
  return "";
}

}  // namespace mujacobian

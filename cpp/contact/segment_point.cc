#include "contact/segment_point.h"

#include "contact/kinematics.h"

namespace mujacobian {
namespace {

// Whether the motion of the point depends on that of the nearest points.
template <class S>
bool uses_nearest(const SegmentPointT<S>& p) {
  return p.nearest_start || p.to_end || p.direction == SegmentDirection::kNearest;
}

// Velocity of `towards`. `nearest` holds the velocities of the nearest points.
template <class S>
Vec3T<S> direction_velocity(const SegmentPointT<S>& p, Vec3T<S> from, const MotionT<S> motion[2],
                            const Vec3T<S> nearest[2]) {
  const Vec3T<S> n = p.towards;
  switch (p.direction) {
    case SegmentDirection::kFaceNormal:
      break;
    case SegmentDirection::kNearest: {
      Vec3T<S> span = p.nearest.center[1] - p.nearest.center[0];
      return (1 / dot(span, n)) * across(nearest[1] - nearest[0], n);
    }
    case SegmentDirection::kRim:
      return support_change(p.rim, n, from, motion).normal;
  }
  return cross(motion[1].ang, n);
}

// Velocity of the vector from the segment to the line of the surface.                      (CON-16)
template <class S>
Vec3T<S> offset_velocity(const SegmentPointT<S>& p, Vec3T<S> from, const MotionT<S> motion[2],
                         const Vec3T<S> nearest[2]) {
  Vec3T<S> a = p.axis, da = cross(motion[0].ang, a);
  Vec3T<S> n = p.towards, dn = direction_velocity(p, from, motion, nearest);
  Vec3T<S> off = across(n, a), change = dn - (dot(dn, a) + dot(n, da)) * a - dot(n, a) * da;
  if (p.unit) {
    S length = norm(off);
    change = (1 / length) * across(change, (1 / length) * off);
  }
  return p.radius * change;
}

}  // namespace

template <class S>
Vec3T<S> segment_velocity(const SegmentPointT<S>& p, Vec3T<S> from, const MotionT<S> both[2]) {
  const MotionT<S> motion[2] = {both[p.owner], both[1 - p.owner]};
  Vec3T<S> nearest[2], a = p.axis;
  if (uses_nearest(p)) vary_centers(p.nearest, from, motion, nearest);

  // velocity at a constant distance from the start
  Vec3T<S> start = p.nearest_start ? nearest[0] : velocity(motion[0], from, p.start);
  Vec3T<S> moved = start + dot(p.point - p.start, a) * cross(motion[0].ang, a);
  if (p.radius > 0) {
    Vec3T<S> off = surface_offset(p);
    moved = velocity(motion[0], from, p.point - off) + offset_velocity(p, from, motion, nearest);
  }
  if (p.rule == SegmentRule::kStart) return moved;

  // how far the point must advance, from velocities relative to the other geom             (CON-15)
  auto relative = [&](Vec3T<S> v, Vec3T<S> at) {
    return dot(p.side, v - velocity(motion[1], from, at));
  };
  S advance = -relative(moved, p.point);
  if (p.rule == SegmentRule::kStep) advance = advance + relative(start, p.start);
  if (p.to_end) advance = advance - relative(nearest[1], p.nearest.center[1]);
  return moved + (p.share * advance / dot(p.side, a)) * a;
}

template <class S>
SegmentPointT<S> constant(const SegmentPoint& p) {
  return {.owner = p.owner,
          .axis = p.axis,
          .start = p.start,
          .point = p.point,
          .nearest_start = p.nearest_start,
          .rule = p.rule,
          .side = p.side,
          .to_end = p.to_end,
          .share = p.share,
          .radius = p.radius,
          .unit = p.unit,
          .direction = p.direction,
          .towards = p.towards,
          .nearest = constant<S>(p.nearest),
          .rim = constant<S>(p.rim)};
}

template <class S>
SegmentPointT<S> moved(const SegmentPoint& p, Vec3 from, const MotionT<S> both[2],
                       const ContactSource& source) {
  const MotionT<S> motion[2] = {both[p.owner], both[1 - p.owner]};
  const ContactSource sides{source.m, source.d, {source.geom[p.owner], source.geom[1 - p.owner]}};
  SegmentPointT<S> result = constant<S>(p);
  Vec3T<S> nearest[2];
  if (uses_nearest(p)) vary_centers<S>(result.nearest, from, motion, nearest);
  const Vec3T<S> advanced = segment_velocity<S>(result, from, both);
  const Vec3T<S> turning = direction_velocity<S>(result, from, motion, nearest);
  result.axis = turned(motion[0], p.axis);
  result.start = p.nearest_start ? p.start + nearest[0] : moved_point(motion[0], from, p.start);
  result.point += advanced;
  result.side = turned(motion[1], p.side);
  result.towards += turning;
  if (uses_nearest(p)) result.nearest = moved<S>(p.nearest, from, motion, nearest);
  if (p.direction == SegmentDirection::kRim) {
    result.rim = moved(p.rim, p.towards, from, motion, sides);
  }
  return result;
}

template Vec3 segment_velocity(const SegmentPoint&, Vec3, const Motion[2]);
template Vec3T<Packet> segment_velocity(const SegmentPointT<Packet>&, Vec3T<Packet>,
                                        const MotionT<Packet>[2]);
template SegmentPointT<Packet> constant(const SegmentPoint&);
template Vec3T<ContactDual> segment_velocity(const SegmentPointT<ContactDual>&, Vec3T<ContactDual>,
                                             const MotionT<ContactDual>[2]);
template SegmentPointT<ContactDual> constant(const SegmentPoint&);
template SegmentPointT<ContactDual> moved(const SegmentPoint&, Vec3, const MotionT<ContactDual>[2],
                                          const ContactSource&);

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

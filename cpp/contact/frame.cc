#include "contact/frame.h"

#include "contact/kinematics.h"

namespace mujacobian {
namespace {

// A capsule whose axis is closer to the normal than this has no direction along a plane.
constexpr double kUpright = 1e-12;

}  // namespace

template <class T, class S>
Vec3T<S> frame_turn(const ContactGeometryT<T>& g, Vec3T<S> dn, Vec3T<S> dhint) {
  const Vec3T<S> normal = g.normal, tangent = g.tangent[1];
  S spin = dot(dhint, tangent) - dot(g.normal, g.hint) * dot(dn, tangent);
  // a capsule standing on end has no direction along the plane: any spin describes the same contact
  // unless its friction depends on the direction, where there is no derivative
  // tie: upright capsule
  spin = value(g.hint_length) < kUpright ? S(0) : spin / g.hint_length;
  return cross(normal, dn) + spin * normal;
}

template Vec3 frame_turn(const ContactGeometry&, Vec3, Vec3);
template Vec3T<Packet> frame_turn(const ContactGeometry&, Vec3T<Packet>, Vec3T<Packet>);
template Vec3T<ContactDual> frame_turn(const ContactGeometryT<ContactDual>&, Vec3T<ContactDual>,
                                       Vec3T<ContactDual>);

FrameCotangent frame_cotangent(const ContactGeometry& g, Vec3 bar) {
  // tie: upright capsule
  if (g.hint_length < kUpright) return {cross(bar, g.normal), {0, 0, 0}};
  const double spin = dot(bar, g.normal) / g.hint_length;
  return {cross(bar, g.normal) - (spin * dot(g.normal, g.hint)) * g.tangent[1],
          spin * g.tangent[1]};
}

// The length of the part of the hint across the normal changes with the angle between the two.
FrameCotangent vary_frame_cotangent(const ContactGeometry& g, Vec3 bar, Vec3 turn, Vec3 dhint) {
  const Vec3 dn = cross(turn, g.normal), change = cross(bar, dn);
  // tie: upright capsule
  if (g.hint_length < kUpright) return {change, {0, 0, 0}};
  const double along = dot(g.normal, g.hint), dalong = dot(dn, g.hint) + dot(g.normal, dhint);
  const double inverse = 1 / g.hint_length, dlength = -along * dalong * inverse;
  const double spin = dot(bar, g.normal) * inverse;
  const double dspin = (dot(bar, dn) - spin * dlength) * inverse;
  const Vec3 t = g.tangent[1], dt = cross(turn, t);
  return {change - (dspin * along + spin * dalong) * t - (spin * along) * dt,
          dspin * t + spin * dt};
}

}  // namespace mujacobian

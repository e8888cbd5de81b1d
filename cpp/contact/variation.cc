#include "contact/variation.h"

#include <cmath>
#include <type_traits>

#include "contact/frame.h"
#include "contact/kinematics.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// Normals of faces that are parallel up to rounding.
constexpr double kParallel = 1e-14;

// Half the extent of a box along a direction.
double box_reach(const Geom& box, Vec3 direction) {
  double sum = 0;
  for (int k = 0; k < 3; k++) sum += box.size[k] * std::abs(dot(column(box.frame, k), direction));
  return sum;
}

// Writes the six columns of a geom.
void put(ContactMap& map, int column, const ContactVariationT<Packet>& v) {
  v.distance.store<6>(map.distance + column);
  const Packet* position[3] = {&v.position.x, &v.position.y, &v.position.z};
  const Packet* turn[3] = {&v.turn.x, &v.turn.y, &v.turn.z};
  for (int c = 0; c < 3; c++) {
    position[c]->store<6>(map.position[c] + column);
    turn[c]->store<6>(map.turn[c] + column);
  }
}

// The six unit motions, rotations first.
MotionT<Packet> unit_motions() {
  // the one is number k of the packet of component k
  static constexpr double kUnit[6 + Packet::kSize] = {0, 0, 0, 0, 0, 1};
  auto component = [](int k) { return Packet::load(kUnit + 5 - k); };
  return {{component(0), component(1), component(2)}, {component(3), component(4), component(5)}};
}

// Both geoms together carry the contact along, unless it reproduces MuJoCo's normal only within the
// collider's tolerance, or turns with the frame of another contact.
bool is_relative(const ContactGeometry& g) {
  return !std::holds_alternative<SupportFeature>(g.feature) && !g.first;
}

template <class T, class S>
ContactPointT<S> vary_feature(const FeatureT<T>& feature, const ContactPointT<S>& at,
                              const MotionT<S> motion[2]) {
  auto vary_one = [&](const auto& f) {
    if constexpr (std::is_same_v<T, S>) {
      return vary(f, at, motion);
    } else {
      return vary(constant<S>(f), at, motion);
    }
  };
  return std::visit(vary_one, feature);
}

}  // namespace

template <class T, class S>
ContactVariationT<S> vary(const ContactGeometryT<T>& g, const MotionT<S> given[2]) {
  if (g.fixed) return {S(0), {S(0), S(0), S(0)}, {S(0), S(0), S(0)}};
  if constexpr (std::is_same_v<S, double>) {
    if (g.twin && takes_twin(g, given)) return vary(twin_of(g), given);
  }
  const MotionT<S>* motion = given;
  MotionT<S> perturbed[2];
  ContactVariationT<S> first;
  if (g.first) first = vary_first(g, given, perturbed), motion = perturbed;

  const ContactPointT<S> at{g.distance, g.position, g.between()};
  const ContactPointT<S> rate = vary_feature<T, S>(g.feature, at, motion);

  const Vec3T<S> dhint =
      g.hint_owner >= 0 ? cross(motion[g.hint_owner].ang, Vec3T<S>(g.hint)) : Vec3T<S>{0, 0, 0};
  const Vec3T<S> turn = frame_turn(g, g.flipped ? -rate.normal : rate.normal, dhint);
  return {g.first ? first.distance : rate.distance, rate.position, turn};
}

// The geoms are turned in the frame of the first contact, and follow it.
template <class T, class S>
ContactVariationT<S> vary_first(const ContactGeometryT<T>& g, const MotionT<S> motion[2],
                                MotionT<S> perturbed[2]) {
  const ContactGeometryT<T>& f = *g.first;
  const Vec3T<S> to_first = f.position - g.position;
  const Mat3T<S> perturbation = g.perturbation;
  const MotionT<S> at_first[2] = {about(motion[0], to_first), about(motion[1], to_first)};
  const ContactVariationT<S> v = vary(f, at_first);
  for (int s = 0; s < 2; s++) {
    const Mat3T<S> r = s ? transposed(perturbation) : perturbation;
    const MotionT<S> moved = {v.turn + r * (at_first[s].ang - v.turn),
                              v.position + r * (at_first[s].lin - v.position)};
    perturbed[s] = about(moved, -to_first);
  }
  return v;
}

template ContactVariation vary(const ContactGeometry&, const Motion[2]);
template ContactVariationT<Packet> vary(const ContactGeometry&, const MotionT<Packet>[2]);
template ContactVariationT<ContactDual> vary(const ContactGeometryT<ContactDual>&,
                                             const MotionT<ContactDual>[2]);
template ContactVariation vary_first(const ContactGeometry&, const Motion[2], Motion[2]);

ContactMap vary_units(const ContactGeometry& g, int moves) {
  ContactMap map{};
  if (g.fixed) return map;
  const MotionT<Packet> units = unit_motions(), none{};
  const MotionT<Packet> second_moves[2] = {none, units};
  const ContactVariationT<Packet> second = vary(g, second_moves);
  if (moves & 2) put(map, 6, second);
  if (!(moves & 1)) return map;

  // geom 0 moves alone
  if (!is_relative(g)) {
    const MotionT<Packet> first_moves[2] = {units, none};
    put(map, 0, vary(g, first_moves));
    return map;
  }
  // the same from the motion of both geoms, which does not carry a frame that is tied to the axes
  // of the world
  const Vec3T<Packet> dhint =
      g.hint_owner >= 0 ? cross(units.ang, Vec3T<Packet>(g.hint)) : Vec3T<Packet>{0, 0, 0};
  const Vec3T<Packet> turn = frame_turn(g, cross(units.ang, Vec3T<Packet>(g.normal)), dhint);
  put(map, 0, {-second.distance, units.lin - second.position, turn - second.turn});
  return map;
}

std::optional<ContactVariation> grow(const ContactGeometry& g, const Geom& geom, int side,
                                     int component) {
  const bool round = geom.type == geom::kSphere || geom.type == geom::kCapsule;
  Growth growth{Growth::kRadius};
  if (!round || component != 0) {
    growth = std::visit([&](const auto& f) { return grow(f, geom, side, component); }, g.feature);
  }
  switch (growth.kind) {
    case Growth::kUnsupported:
      return {};
    case Growth::kRadius:
      // the surface comes nearer by one, the contact by half of that
      return ContactVariation{-1, 0.5 * (side ? -g.between() : g.between()), {0, 0, 0}};
    case Growth::kShift: {
      if (g.first) return {};
      Motion moved[2] = {};
      moved[side].lin = geom.frame * growth.shift;
      return vary(g, moved);
    }
  }
  return {};
}

ContactGeometry twin_of(const ContactGeometry& g) {
  ContactGeometry other = g;
  other.feature = g.twin->face;
  other.twin.reset();
  return other;
}

// MuJoCo takes the face along whose normal the boxes are farther apart. `wider` and `leaning` say
// by how much the face of box 1 gains on that of box 0 when the boxes turn relative to one another.
bool takes_twin(const ContactGeometry& g, const Motion motion[2]) {
  const Geom &first = g.twin->box[0], &second = g.twin->box[1];
  const Vec3 n = g.normal, tilt = cross(motion[1].ang - motion[0].ang, n);
  const Vec3 centers = second.position - first.position;
  const double leaning = dot(centers - dot(centers, n) * n, tilt);
  const double wider = box_reach(second, tilt) - box_reach(first, tilt);
  const double rounding = kParallel * norm(tilt);
  int owner = 0;
  if (std::abs(leaning) <= rounding && std::abs(wider) <= rounding) {
    // to second order, by how the boxes slide where their centers' line meets the contact's plane
    const Vec3 meeting = first.position + dot(g.position - first.position, n) * n - g.position;
    // tie: reference face by motion
    owner = dot(at_point(motion[1], meeting) - at_point(motion[0], meeting), tilt) > 0;
  } else {
    // tie: reference face by width
    owner = wider > std::abs(leaning);
  }
  return owner == g.twin->face.owner;
}

}  // namespace mujacobian

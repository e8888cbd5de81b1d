// Potentials of contact and friction between round segments of rods and bodies.
#include <algorithm>
#include <cmath>

#include "rods/algebra.h"
#include "rods/broad_phase.h"
#include "rods/lever.h"
#include "rods/nearest.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

constexpr double kBarrier = 1e-3;  // of the nearest points, relative to the square of both radii

// Returns (1 - t) start + t end, where the derivative with respect to t is end - start
MaterialPoint blend(const Segment& s, double start, double end) {
  MaterialPoint p = s.start;
  for (int k = 0; k < 2; k++) p.weight[k] = start * s.start.weight[k] + end * s.end.weight[k];
  p.offset = start * s.start.offset + end * s.end.offset;
  return p;
}

MaterialPoint at_fraction(const Segment& s, double t) { return blend(s, 1 - t, t); }
MaterialPoint along(const Segment& s) { return blend(s, -1, 1); }

// Returns the levers of a material point, or of a vector
Levers levers(const Model& m, const State& q, const MaterialPoint& p) {
  Levers made(m, q);
  made.add(p, 1);
  return made;
}

// Two segments in a state, with their nearest points a and b
struct Closeness {
  const Bundle& bundle;
  const Segment &first, &second;
  Nearest at;
  MaterialPoint a, b;
  Vec3 e, f;        // directions of the segments
  Vec3 between;     // from b to a
  double distance;  // smooth distance of the center lines
  double depth;     // penetration, or 0

  Closeness(const Pair& pair, const State& q)
      : bundle(*pair.bundle), first(*pair.first), second(*pair.second) {
    const double reach = first.radius + second.radius;
    e = position(along(first), q), f = position(along(second), q);
    at = nearest(position(first.start, q) - position(second.start, q), e, f,
                 kBarrier * reach * reach);
    a = at_fraction(first, at.s), b = at_fraction(second, at.t);
    between = position(a, q) - position(b, q);
    distance = std::sqrt(at.value);
    depth = std::max(0.0, reach - distance);
  }
};

// Derivatives of the square of the distance with respect to the slots of a pair         (ROD-46)
class Approach {
 public:
  Approach(const Model& m, const Closeness& c, const State& q)
      : closeness_(c),
        between_(m, q),
        e_(levers(m, q, along(c.first))),
        f_(levers(m, q, along(c.second))) {
    between_.add(c.a, 1);
    between_.add(c.b, -1);
  }

  const Levers& between() const { return between_; }
  // Derivatives with respect to a slot of the square, and of its derivatives by s and t
  Vec3 square(int slot) const { return between_.gradient(slot, 2.0 * closeness_.between); }
  Vec3 by_s(int slot) const {
    return between_.gradient(slot, 2.0 * closeness_.e) +
           e_.gradient(slot, 2.0 * closeness_.between);
  }
  Vec3 by_t(int slot) const {
    return -between_.gradient(slot, 2.0 * closeness_.f) -
           f_.gradient(slot, 2.0 * closeness_.between);
  }
  // Returns the cotangent of a slot, given those of s, t, the vector `between` and the square
  Vec3 pull_back(int slot, double s_bar, double t_bar, Vec3 between_bar, double square_bar) const {
    const Nearest& at = closeness_.at;
    const double determinant = at.ss * at.tt - at.st * at.st;
    const double s = (at.tt * s_bar - at.st * t_bar) / determinant;
    const double t = (at.ss * t_bar - at.st * s_bar) / determinant;
    return between_.gradient(slot, between_bar) + square_bar * square(slot) - s * by_s(slot) -
           t * by_t(slot);
  }

 private:
  const Closeness& closeness_;
  Levers between_, e_, f_;
};

// Slots of the nearest points of a pair
std::vector<int> slots_of(const Model& m, const Closeness& c) {
  std::vector<int> slots;
  list_slots(m, c.a, slots), list_slots(m, c.b, slots);
  return slots;
}

// Add the potential of the normal force, stiffness/2 depth^2                            (ROD-47)
void add_normal(const Model& m, const Closeness& c, const State& q, Sum& sum) {
  const double k = c.bundle.stiffness, d = c.distance;
  sum.add(0.5 * k * c.depth * c.depth, k * c.depth * norm(position(c.a, q)));
  if (!sum.gradient && !sum.hessian) return;
  const Approach approach(m, c, q);
  // derivatives with respect to the square of the distance
  const double first = -0.5 * k * c.depth / d;
  const double second = 0.25 * k * (d + c.depth) / (d * d * d);
  approach.between().add_to(sum, (2 * first) * c.between, scaled_identity(2 * first));
  if (!sum.hessian) return;
  const std::vector<int> slots = slots_of(m, c);
  const double determinant = c.at.ss * c.at.tt - c.at.st * c.at.st;
  const double ss = c.at.tt / determinant, st = -c.at.st / determinant, tt = c.at.ss / determinant;
  for (size_t i = 0; i < slots.size(); i++) {
    const Vec3 square = second * approach.square(slots[i]);
    const Vec3 s = approach.by_s(slots[i]), t = approach.by_t(slots[i]);
    const Vec3 by_s = (-first) * (ss * s + st * t), by_t = (-first) * (st * s + tt * t);
    for (size_t j = i; j < slots.size(); j++) {
      sum.hessian->add(slots[i], slots[j],
                       outer(square, approach.square(slots[j])) +
                           outer(by_s, approach.by_s(slots[j])) +
                           outer(by_t, approach.by_t(slots[j])));
    }
  }
}

// Friction of two segments that touched at the beginning of the step                    (ROD-49)
struct Rub {
  const Pinch& pinch;
  Levers moved;        // displacement of the touching point of the first on the second
  Vec3 normal, along;  // direction of the pressure, and the tangential part of `moved`
  double pressure;     // coefficient of friction times normal force
  double scale;        // displacement below which friction is viscous
  double length;       // sqrt(along^2 + scale^2)

  Rub(const Problem& p, const Pinch& given, const State& q) : pinch(given), moved(p.model, q) {
    moved.add(pinch.a, 1);
    moved.add_arm(pinch.first->frame, arm(p, *pinch.first, pinch.first_arm, q));
    moved.add(pinch.b, -1);
    moved.add_arm(pinch.second->frame, -arm(p, *pinch.second, pinch.second_arm, q));
    normal = (1 / norm(pinch.between)) * pinch.between;
    along = moved.value() - dot(normal, moved.value()) * normal;
    const Bundle& b = *pinch.bundle;
    pressure = b.friction * b.stiffness * pinch.depth;
    scale = p.model.timestep * b.slip;
    length = std::sqrt(dot(along, along) + scale * scale);
  }
  // Returns an arm at q, which rotates with the frame of a segment
  static Vec3 arm(const Problem& p, const Segment& s, Vec3 begin, const State& q) {
    return q.R[s.frame] * transpose_mul(p.previous.R[s.frame], begin);
  }
};

}  // namespace

std::vector<Pinch> pinches(const Model& m, const State& q) {
  std::vector<Pinch> all;
  for (const Pair& pair : near_pairs(m, q, 1)) {
    const Closeness c(pair, q);
    if (c.depth == 0) continue;
    const double reach = c.first.radius + c.second.radius;
    all.push_back({pair.bundle, pair.first, pair.second, c.a, c.b, c.depth, c.between,
                   (-c.first.radius / reach) * c.between, (c.second.radius / reach) * c.between});
  }
  return all;
}

int deepest_segment(const Problem& p, const State& q, int slot, double& depth) {
  const Model& m = p.model;
  int first = static_cast<int>(m.contacts.size()), deepest = -1;  // first segment of the bundle
  for (const Bundle& bundle : m.bundles) {
    for (const Pinch& pinch : pinches(m, q)) {
      if (pinch.bundle != &bundle || pinch.depth <= depth) continue;
      for (const Segment* s : {pinch.first, pinch.second}) {
        std::vector<int> slots;
        list_slots(m, s->start, slots);
        if (std::find(slots.begin(), slots.end(), slot) == slots.end()) continue;
        depth = pinch.depth;
        deepest = first + static_cast<int>(s - bundle.segments.data());
      }
    }
    first += static_cast<int>(bundle.segments.size());
  }
  return deepest;
}

void add_segments(const Problem& p, const State& q, Sum& sum) {
  for (const Pair& pair : near_pairs(p.model, q, 1)) {
    const Closeness c(pair, q);
    if (c.depth > 0) add_normal(p.model, c, q, sum);
  }
  for (const Pinch& pinch : p.pinches) {
    const Rub rub(p, pinch, q);
    if (rub.pressure == 0) continue;
    const Vec3 n = rub.normal, u = rub.along;
    sum.add(rub.pressure * dot(u, u) / (rub.length + rub.scale));
    if (!sum.gradient && !sum.hessian) continue;
    const Mat3 tangential = difference(identity3(), outer(n, n));
    const Mat3 slid = (1 / (rub.length * rub.length)) * outer(u, u);
    const double stiffness = rub.pressure / rub.length;
    rub.moved.add_to(sum, stiffness * u, stiffness * difference(tangential, slid));
  }
}

void pull_back_segments(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (const Pair& pair : near_pairs(m, q, 1)) {
    const Closeness c(pair, q);
    if (c.depth == 0) continue;
    const Vec3 motion = Approach(m, c, q).between().motion(z);
    bars.contact[c.bundle.contact] -= c.depth * dot(c.between, motion) / c.distance;
  }
  for (const Pinch& pinch : p.pinches) {
    const Rub rub(p, pinch, q);
    const Bundle& bundle = *pinch.bundle;
    const Vec3 n = rub.normal, moved = rub.moved.value(), v = rub.moved.motion(z);
    // stiffness and coefficient of friction
    const double power = dot(v, rub.along) / rub.length;
    bars.contact[bundle.contact] += bundle.friction * pinch.depth * power;
    bars.friction[bundle.contact] += bundle.stiffness * pinch.depth * power;
    if (rub.pressure == 0) continue;
    // cotangents of the displacement, of its motion along z, and of the normal          (ROD-50)
    const Vec3 w = (1 / rub.length) * (v - (power / rub.length) * rub.along);
    const Vec3 moved_bar = rub.pressure * (w - dot(n, w) * n);
    const Vec3 v_bar = (rub.pressure / rub.length) * rub.along;
    Vec3 normal_bar = -rub.pressure * (dot(n, moved) * w + dot(w, n) * moved);
    // of the fractions of the segments
    const Closeness before({&bundle, pinch.first, pinch.second}, p.previous);
    const Levers e = levers(m, q, along(*pinch.first)), f = levers(m, q, along(*pinch.second));
    double s_bar = dot(moved_bar, e.value()) + dot(v_bar, e.motion(z));
    double t_bar = -dot(moved_bar, f.value()) - dot(v_bar, f.motion(z));
    // of the arms, and of the vector between the segments
    Tangent& previous = *bars.past[0];
    Vec3 between_bar = (1 / norm(pinch.between)) * (normal_bar - dot(n, normal_bar) * n);
    auto rotate = [&](const Segment& s, Vec3 arm, double sign) {
      const int slot = m.frame_slot[s.frame];
      const Vec3 end_bar = sign * (moved_bar + cross(v_bar, z[slot]));
      const Vec3 begin_bar = p.previous.R[s.frame] * transpose_mul(q.R[s.frame], end_bar);
      previous[slot] += cross(begin_bar, arm);
      between_bar += (-sign * s.radius / (pinch.first->radius + pinch.second->radius)) * begin_bar;
    };
    rotate(*pinch.first, pinch.first_arm, 1);
    rotate(*pinch.second, pinch.second_arm, -1);
    s_bar += dot(between_bar, before.e), t_bar -= dot(between_bar, before.f);
    // depth at the beginning of the step
    const double square_bar = -0.5 * bundle.friction * bundle.stiffness * power / before.distance;
    const Approach approach(m, before, p.previous);
    for (int slot : slots_of(m, before)) {
      previous[slot] += approach.pull_back(slot, s_bar, t_bar, between_bar, square_bar);
    }
  }
}

}  // namespace mujacobian::rods

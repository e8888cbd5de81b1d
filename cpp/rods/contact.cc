// Potentials of contact and friction between sampled points and shapes.
#include <algorithm>

#include "rods/algebra.h"
#include "rods/lever.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

// Returns the axes of the shape
Mat3 axes(const Surface& s, const State& q) {
  return s.body_frame < 0 ? identity3() : q.R[s.body_frame];
}

// Vector from the origin of the body to the sample, expressed in the axes of the shape
Levers offset(const Model& m, const Contact& c, const State& q) {
  const Surface& s = m.surfaces[c.surface];
  Levers w(m, q);
  w.add(c.sample, 1);
  if (s.body_point >= 0) w.add_point(s.body_point, -1);
  if (s.body_frame >= 0) w.express_in(s.body_frame);
  return w;
}

// Number of frames that the sphere rotates with
int count(const Contact& c) { return (c.rolling[0] >= 0) + (c.rolling[1] >= 0); }

// Part of the arm of the touching point that rotates with one of these frames, at q      (ROD-42)
Vec3 turned_arm(const Problem& p, const Contact& c, const Grip& g, int frame, const State& q) {
  Vec3 local = transpose_mul(p.previous.R[frame], g.arm);
  return (1.0 / count(c)) * (q.R[frame] * local);
}

// Vector from the origin of the body to the material point that touched the shape at the beginning
Levers foot(const Problem& p, const Contact& c, const Grip& g, const State& q) {
  const Surface& s = p.model.surfaces[c.surface];
  Levers w(p.model, q);
  w.add(c.sample, 1);
  for (int frame : c.rolling) {
    if (frame >= 0) w.add_arm(frame, turned_arm(p, c, g, frame, q));
  }
  if (s.body_point >= 0) w.add_point(s.body_point, -1);
  if (s.body_frame >= 0) w.express_in(s.body_frame);
  return w;
}

// Returns the position of the sample in the axes of the shape
Vec3 local(const Contact& c, const Surface& s, const State& q) {
  Vec3 w = position(c.sample, q);
  if (s.body_point >= 0) w = w - q.x[s.body_point];
  return transpose_mul(axes(s, q), w);
}

// A contact at the end of the step, in the axes of the shape
struct Touch {
  const Contact& contact;
  const Surface& surface;
  const Grip& grip;
  Vec3 at;  // position of the sample
  Distance distance;
  double depth;
  double pressure;  // coefficient of friction times normal force at the beginning of the step

  Touch(const Problem& p, size_t i, const State& q)
      : contact(p.model.contacts[i]),
        surface(p.model.surfaces[contact.surface]),
        grip(p.grips[i]),
        at(local(contact, surface, q)),
        distance(p.model.shapes[surface.shape]->distance(at)),
        depth(std::max(0.0, surface.radius - distance.value)),
        pressure(p.scheme.is_static ? 0 : surface.friction * surface.stiffness * grip.depth) {}
};

// Sliding during a step, and the smoothed direction of friction                          (ROD-24)
struct Slide {
  Vec3 moved;     // displacement of the touching point
  Vec3 along;     // its tangential part
  double scale;   // displacement below which friction is viscous
  double length;  // sqrt(along^2 + scale^2)

  Slide(const Problem& p, const Touch& t, const State& q) {
    moved = t.at - t.grip.at;
    Vec3 n = t.grip.normal;
    for (int frame : t.contact.rolling) {
      if (frame < 0) continue;
      moved += transpose_mul(axes(t.surface, q), turned_arm(p, t.contact, t.grip, frame, q));
    }
    if (count(t.contact) > 0) moved += t.surface.radius * n;  // minus the arm at the beginning
    along = moved - dot(n, moved) * n;
    scale = p.model.timestep * t.surface.slip;
    length = std::sqrt(dot(along, along) + scale * scale);
  }
};

}  // namespace

Grip grip(const Problem& p, const Contact& c) {
  const Surface& s = p.model.surfaces[c.surface];
  Grip g;
  g.at = local(c, s, p.previous);
  g.distance = p.model.shapes[s.shape]->distance(g.at);
  g.depth = std::max(0.0, s.radius - g.distance.value);
  // the gradient of a grid does not have length one                                     (ROD-54)
  const double steepness = norm(g.distance.normal);
  g.normal = (1 / steepness) * g.distance.normal;
  const Mat3 across = difference(identity3(), outer(g.normal, g.normal));
  g.turning = (1 / steepness) * (across * g.distance.curvature);
  g.arm = -s.radius * (axes(s, p.previous) * g.normal);
  return g;
}

void add_contacts(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.contacts.size(); i++) {
    Touch t(p, i, q);
    const double stiffness = t.surface.stiffness;
    if (t.depth == 0 && t.pressure == 0) continue;
    Mat3 R = axes(t.surface, q);
    // normal force, which acts at the sample                                            (ROD-21)
    if (t.depth > 0) {
      Vec3 n = t.distance.normal;
      sum.add(0.5 * stiffness * t.depth * t.depth, stiffness * t.depth * norm(t.at));
      Vec3 gradient = (-stiffness * t.depth) * n;
      Mat3 hessian = stiffness * outer(n, n) + (-stiffness * t.depth) * t.distance.curvature;
      if (sum.gradient || sum.hessian) {
        offset(m, t.contact, q).add_to(sum, R * gradient, R * times_transposed(hessian, R));
      }
    }
    // friction, which acts at the touching point                                        (ROD-24)
    if (t.pressure > 0) {
      Slide slide(p, t, q);
      Vec3 n = t.grip.normal, u = slide.along;
      sum.add(t.pressure * dot(u, u) / (slide.length + slide.scale));
      if (!sum.gradient && !sum.hessian) continue;
      Vec3 gradient = (t.pressure / slide.length) * u;
      Mat3 tangential = difference(identity3(), outer(n, n));
      Mat3 slid = (1 / (slide.length * slide.length)) * outer(u, u);
      Mat3 hessian = (t.pressure / slide.length) * difference(tangential, slid);
      foot(p, t.contact, t.grip, q).add_to(sum, R * gradient, R * times_transposed(hessian, R));
    }
  }
}

int deepest_contact(const Problem& p, const State& q, int slot) {
  const Model& m = p.model;
  double most = 0;
  int deepest = deepest_segment(p, q, slot, most);
  for (size_t i = 0; i < m.contacts.size(); i++) {
    const Touch t(p, i, q);
    if (t.depth <= most) continue;
    const std::vector<int> slots = slots_of(m, t.contact);
    if (std::find(slots.begin(), slots.end(), slot) == slots.end()) continue;
    most = t.depth, deepest = static_cast<int>(i);
  }
  return deepest;
}

void pull_back_contacts(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.contacts.size(); i++) {
    Touch t(p, i, q);
    const Surface& s = t.surface;
    const double grip_depth = p.scheme.is_static ? 0 : t.grip.depth;
    if (t.depth == 0 && grip_depth == 0) continue;
    const Mat3 S = axes(s, q), S_before = axes(s, p.previous);
    Vec3 v = transpose_mul(S, offset(m, t.contact, q).motion(z));
    Vec3 v_foot = transpose_mul(S, foot(p, t.contact, t.grip, q).motion(z));
    // stiffness and coefficient of friction
    Slide slide(p, t, q);
    const double power = dot(v_foot, slide.along) / slide.length;
    double& stiffness_bar = bars.contact[s.contact];
    stiffness_bar += s.friction * grip_depth * power - t.depth * dot(t.distance.normal, v);
    bars.friction[s.contact] += s.stiffness * grip_depth * power;
    // beginning of the step, through pressure, displacement and normal of friction      (ROD-25)
    if (t.pressure == 0) continue;
    Vec3 n = t.grip.normal, moved = slide.moved;
    Vec3 w = (1 / slide.length) * (v_foot - (power / slide.length) * slide.along);
    Vec3 moved_bar = t.pressure * (w - dot(n, w) * n);
    Vec3 at_bar = (-s.friction * s.stiffness * power) * t.grip.distance.normal - moved_bar;
    Vec3 normal_bar = -t.pressure * (dot(n, moved) * w + dot(w, n) * moved);
    // arm of the touching point                                                         (ROD-43)
    Vec3 pushed = S * moved_bar, pulled = S * ((t.pressure / slide.length) * slide.along);
    const Vec3 observer = s.body_frame < 0 ? Vec3{} : z[m.frame_slot[s.body_frame]];
    Tangent& previous = *bars.past[0];
    Vec3 arm_bar{};
    for (int frame : t.contact.rolling) {
      if (frame < 0) continue;
      const int slot = m.frame_slot[frame];
      const double weight = 1.0 / count(t.contact);
      // the arm rotates from the beginning to the end of the step
      Vec3 end_bar = weight * (pushed + cross(pulled, z[slot] - observer));
      Vec3 begin_bar = p.previous.R[frame] * transpose_mul(q.R[frame], end_bar);
      previous[slot] += cross(begin_bar, t.grip.arm);
      arm_bar += begin_bar;
    }
    if (count(t.contact) > 0) normal_bar += s.radius * moved_bar;
    // the arm is opposite to the normal in the axes of the body
    normal_bar += (-s.radius) * transpose_mul(S_before, arm_bar);
    if (s.body_frame >= 0) previous[m.frame_slot[s.body_frame]] += cross(t.grip.arm, arm_bar);
    at_bar += transpose_mul(t.grip.turning, normal_bar);
    offset(m, t.contact, p.previous).pull_back(S_before * at_bar, previous);
  }
}

}  // namespace mujacobian::rods

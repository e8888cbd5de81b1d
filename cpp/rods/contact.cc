// Contact of sampled points with shapes, and its friction.
#include <algorithm>

#include "rods/algebra.h"
#include "rods/lever.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

// Axes of the shape
Mat3 axes(const Surface& s, const State& q) {
  return s.body_frame < 0 ? identity3() : q.R[s.body_frame];
}

// From the body's origin to the sample, as the shape sees it
Levers offset(const Model& m, const Contact& c, const State& q) {
  const Surface& s = m.surfaces[c.surface];
  Levers w(m, q);
  w.add(c.sample, 1);
  if (s.body_point >= 0) w.add_point(s.body_point, -1);
  if (s.body_frame >= 0) w.seen_from(s.body_frame);
  return w;
}

// The sample in the axes of the shape
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
  Vec3 at;  // the sample
  Distance distance;
  double depth;
  double pressure;  // normal force of the beginning times friction coefficient

  Touch(const Problem& p, size_t i, const State& q)
      : contact(p.model.contacts[i]),
        surface(p.model.surfaces[contact.surface]),
        grip(p.grips[i]),
        at(local(contact, surface, q)),
        distance(p.model.shapes[surface.shape]->distance(at)),
        depth(std::max(0.0, surface.radius - distance.value)),
        pressure(surface.friction * surface.stiffness * grip.depth) {}
};

// The sliding of a step and the smoothed direction of friction                           (ROD-24)
struct Slide {
  Vec3 along;     // tangential displacement of the sample
  double scale;   // displacement below which friction is viscous
  double length;  // sqrt(along^2 + scale^2)

  Slide(const Problem& p, const Touch& t) {
    Vec3 moved = t.at - t.grip.at, n = t.grip.distance.normal;
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
  return g;
}

void add_contacts(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.contacts.size(); i++) {
    Touch t(p, i, q);
    const double stiffness = t.surface.stiffness;
    if (t.depth == 0 && t.pressure == 0) continue;
    // with respect to the sample in the axes of the shape
    Vec3 gradient{};
    Mat3 hessian{};
    if (t.depth > 0) {  // (ROD-21)
      Vec3 n = t.distance.normal;
      sum.add(0.5 * stiffness * t.depth * t.depth);
      gradient = (-stiffness * t.depth) * n;
      hessian = stiffness * outer(n, n) + (-stiffness * t.depth) * t.distance.curvature;
    }
    if (t.pressure > 0) {
      Slide slide(p, t);
      Vec3 n = t.grip.distance.normal, u = slide.along;
      sum.add(t.pressure * dot(u, u) / (slide.length + slide.scale));
      gradient += (t.pressure / slide.length) * u;
      Mat3 tangential = difference(identity3(), outer(n, n));
      Mat3 slid = (1 / (slide.length * slide.length)) * outer(u, u);
      hessian = hessian + (t.pressure / slide.length) * difference(tangential, slid);
    }
    if (!sum.gradient && !sum.hessian) continue;
    Mat3 R = axes(t.surface, q);
    offset(m, t.contact, q).add_to(sum, R * gradient, R * times_transposed(hessian, R));
  }
}

void pull_back_contacts(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.contacts.size(); i++) {
    Touch t(p, i, q);
    const Surface& s = t.surface;
    if (t.depth == 0 && t.grip.depth == 0) continue;
    Vec3 v = transpose_mul(axes(s, q), offset(m, t.contact, q).motion(z));
    // v . friction through the pressure, the displacement and the normal                (ROD-25)
    Slide slide(p, t);
    const double power = dot(v, slide.along) / slide.length;
    double& stiffness_bar = bars.contact[t.contact.surface];
    stiffness_bar += s.friction * t.grip.depth * power - t.depth * dot(t.distance.normal, v);
    bars.friction[t.contact.surface] += s.stiffness * t.grip.depth * power;
    if (t.pressure == 0) continue;
    Vec3 n = t.grip.distance.normal, moved = t.at - t.grip.at;
    Vec3 w = (1 / slide.length) * (v - (power / slide.length) * slide.along);
    Vec3 at_bar = (-s.friction * s.stiffness * power) * n - t.pressure * (w - dot(n, w) * n);
    Vec3 normal_bar = -t.pressure * (dot(n, moved) * w + dot(w, n) * moved);
    at_bar += t.grip.distance.curvature * normal_bar;
    offset(m, t.contact, p.previous).pull_back(axes(s, p.previous) * at_bar, bars.previous);
  }
}

}  // namespace mujacobian::rods

// Contact of sampled points with shapes, and its friction.
#include "rods/algebra.h"
#include "rods/lever.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

// Axes of the shape
Mat3 axes(const Contact& c, const State& q) {
  return c.body_frame < 0 ? identity3() : q.R[c.body_frame];
}

// From the body's origin to the sample, as the shape sees it
Levers offset(const Model& m, const Contact& c, const State& q) {
  Levers w(m, q);
  w.add(c.sample, 1);
  if (c.body_point >= 0) w.add_point(c.body_point, -1);
  if (c.body_frame >= 0) w.seen_from(c.body_frame);
  return w;
}

// The sample in the axes of the shape
Vec3 local(const Contact& c, const State& q) {
  Vec3 w = position(c.sample, q);
  if (c.body_point >= 0) w = w - q.x[c.body_point];
  return transpose_mul(axes(c, q), w);
}

// The sliding of a step and the smoothed direction of friction                           (ROD-24)
struct Slide {
  Vec3 along;     // tangential displacement of the sample
  double length;  // sqrt(along^2 + scale^2)
  double scale;   // displacement below which friction is viscous
};

Slide slide(const Problem& p, const Contact& c, const Grip& g, Vec3 at) {
  Vec3 moved = at - g.at, n = g.distance.normal;
  Slide s;
  s.along = moved - dot(n, moved) * n;
  s.scale = p.model.timestep * c.slip;
  s.length = std::sqrt(dot(s.along, s.along) + s.scale * s.scale);
  return s;
}

}  // namespace

Grip grip(const Problem& p, const Contact& c) {
  Grip g{};
  if (c.friction == 0) return g;
  g.at = local(c, p.previous);
  g.distance = p.model.shapes[c.shape]->distance(g.at);
  double depth = c.radius - g.distance.value;
  if (depth > 0) g.pressure = c.friction * c.stiffness * depth;
  return g;
}

void add_contacts(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.contacts.size(); i++) {
    const Contact& c = m.contacts[i];
    const Grip& g = p.grips[i];
    Vec3 at = local(c, q);
    Distance d = m.shapes[c.shape]->distance(at);
    const double depth = c.radius - d.value;
    if (depth <= 0 && g.pressure == 0) continue;
    // with respect to the sample in the axes of the shape
    Vec3 gradient{};
    Mat3 hessian{};
    if (depth > 0) {
      sum.add(0.5 * c.stiffness * depth * depth);
      gradient = (-c.stiffness * depth) * d.normal;
      hessian = c.stiffness * outer(d.normal, d.normal) + (-c.stiffness * depth) * d.curvature;
    }
    if (g.pressure > 0) {
      Slide s = slide(p, c, g, at);
      Vec3 n = g.distance.normal;
      sum.add(g.pressure * dot(s.along, s.along) / (s.length + s.scale));
      gradient += (g.pressure / s.length) * s.along;
      Mat3 tangential = difference(identity3(), outer(n, n));
      Mat3 slid = (1 / (s.length * s.length)) * outer(s.along, s.along);
      hessian = hessian + (g.pressure / s.length) * difference(tangential, slid);
    }
    if (!sum.gradient && !sum.hessian) continue;
    Mat3 R = axes(c, q);
    offset(m, c, q).add_to(sum, R * gradient, R * times_transposed(hessian, R));
  }
}

void pull_back_contacts(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.contacts.size(); i++) {
    const Contact& c = m.contacts[i];
    const Grip& g = p.grips[i];
    if (g.pressure == 0) continue;
    Vec3 at = local(c, q), n = g.distance.normal, moved = at - g.at;
    Slide s = slide(p, c, g, at);
    Vec3 v = transpose_mul(axes(c, q), offset(m, c, q).motion(z));
    // v . friction through the pressure, the displacement and the normal                (ROD-25)
    const double power = dot(v, s.along) / s.length;
    Vec3 w = (1 / s.length) * (v - (power / s.length) * s.along);
    Vec3 at_bar = (-c.friction * c.stiffness * power) * n - g.pressure * (w - dot(n, w) * n);
    Vec3 normal_bar = -g.pressure * (dot(n, moved) * w + dot(w, n) * moved);
    at_bar += g.distance.curvature * normal_bar;
    offset(m, c, p.previous).pull_back(axes(c, p.previous) * at_bar, bars.previous);
  }
}

}  // namespace mujacobian::rods

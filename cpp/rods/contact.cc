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

// The sliding of a step and the smoothed direction of friction                           (ROD-24)
struct Slide {
  Vec3 along;     // tangential displacement of the sample
  double scale;   // displacement below which friction is viscous
  double length;  // sqrt(along^2 + scale^2)

  Slide(const Problem& p, const Surface& s, const Grip& g, Vec3 at) {
    Vec3 moved = at - g.at, n = g.distance.normal;
    along = moved - dot(n, moved) * n;
    scale = p.model.timestep * s.slip;
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
    const Contact& c = m.contacts[i];
    const Surface& s = m.surfaces[c.surface];
    const Grip& g = p.grips[i];
    Vec3 at = local(c, s, q);
    Distance d = m.shapes[s.shape]->distance(at);
    const double depth = s.radius - d.value, pressure = s.friction * s.stiffness * g.depth;
    if (depth <= 0 && pressure == 0) continue;
    // with respect to the sample in the axes of the shape
    Vec3 gradient{};
    Mat3 hessian{};
    if (depth > 0) {
      sum.add(0.5 * s.stiffness * depth * depth);
      gradient = (-s.stiffness * depth) * d.normal;
      hessian = s.stiffness * outer(d.normal, d.normal) + (-s.stiffness * depth) * d.curvature;
    }
    if (pressure > 0) {
      Slide slide(p, s, g, at);
      Vec3 n = g.distance.normal, u = slide.along;
      sum.add(pressure * dot(u, u) / (slide.length + slide.scale));
      gradient += (pressure / slide.length) * u;
      Mat3 tangential = difference(identity3(), outer(n, n));
      Mat3 slid = (1 / (slide.length * slide.length)) * outer(u, u);
      hessian = hessian + (pressure / slide.length) * difference(tangential, slid);
    }
    if (!sum.gradient && !sum.hessian) continue;
    Mat3 R = axes(s, q);
    offset(m, c, q).add_to(sum, R * gradient, R * times_transposed(hessian, R));
  }
}

void pull_back_contacts(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.contacts.size(); i++) {
    const Contact& c = m.contacts[i];
    const Surface& s = m.surfaces[c.surface];
    const Grip& g = p.grips[i];
    Vec3 at = local(c, s, q);
    Distance d = m.shapes[s.shape]->distance(at);
    const double depth = std::max(0.0, s.radius - d.value);
    if (depth == 0 && g.depth == 0) continue;
    Vec3 v = transpose_mul(axes(s, q), offset(m, c, q).motion(z));
    bars.contact[c.surface] += -depth * dot(d.normal, v);
    // v . friction through the pressure, the displacement and the normal                (ROD-25)
    Slide slide(p, s, g, at);
    const double power = dot(v, slide.along) / slide.length;
    bars.contact[c.surface] += s.friction * g.depth * power;
    bars.friction[c.surface] += s.stiffness * g.depth * power;
    const double pressure = s.friction * s.stiffness * g.depth;
    if (pressure == 0) continue;
    Vec3 n = g.distance.normal, moved = at - g.at;
    Vec3 w = (1 / slide.length) * (v - (power / slide.length) * slide.along);
    Vec3 at_bar = (-s.friction * s.stiffness * power) * n - pressure * (w - dot(n, w) * n);
    Vec3 normal_bar = -pressure * (dot(n, moved) * w + dot(w, n) * moved);
    at_bar += g.distance.curvature * normal_bar;
    offset(m, c, p.previous).pull_back(axes(s, p.previous) * at_bar, bars.previous);
  }
}

}  // namespace mujacobian::rods

// Potentials of stretch and shear of the edges of rods.
#include "rods/algebra.h"
#include "rods/problem.h"

namespace mujacobian::rods {

void add_edges(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.edges.size(); i++) {
    const Edge& e = m.edges[i];
    const int a = m.point_slot[e.start], b = m.point_slot[e.end], f = m.frame_slot[e.frame];
    // energy of stretch and its rate (ROD-13), and of the angle between edge and director (ROD-14)
    Vec3 along = q.x[e.end] - q.x[e.start];
    const double length = norm(along), inverse = 1 / length, rate = e.damping * p.rate;
    const double strain = length / e.length - 1, change = (length - p.lengths[i]) / e.length;
    Vec3 d = inverse * along, u = column(q.R[e.frame], 2);
    const double c = 0.5 * e.shear * e.length, cosine = dot(d, u);
    const double tension = e.stretch * strain + rate * change;
    sum.add(0.5 * e.length * (e.stretch * strain * strain + rate * change * change),
            tension * (length + norm(q.x[e.start])));
    Vec3 skewed = u - d;
    sum.add(0.5 * c * dot(skewed, skewed));  // c (1 - cosine) without cancellation
    // gradient: forces on the ends, torque on the frame
    if (sum.gradient) {
      Tangent& g = *sum.gradient;
      Vec3 force = tension * d - (c * inverse) * (u - cosine * d);
      g[a] += -force;
      g[b] += force;
      g[f] += c * cross(d, u);
    }
    // Hessian: K with respect to the edge vector, `mixed` with respect to edge vector and frame
    if (!sum.hessian) continue;
    Mat3 dd = outer(d, d), ud = outer(u, d), across = difference(identity3(), dd);
    Mat3 stretch = ((e.stretch + rate) / e.length) * dd + (tension * inverse) * across;
    Mat3 shear = ud + transposed(ud) + cosine * difference(identity3(), 3.0 * dd);
    Mat3 K = stretch + (c * inverse * inverse) * shear;
    Mat3 mixed = (c * inverse) * (across * skew(u));  // rows: edge vector, columns: frame
    SparseMatrix& H = *sum.hessian;
    H.add(a, a, K);
    H.add(b, b, K);
    H.add(b, a, (-1.0) * K);
    H.add(b, f, mixed);
    H.add(a, f, (-1.0) * mixed);
    H.add(f, f, bend_of_arc(u, -c * d));
  }
}

void pull_back_edges(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.edges.size(); i++) {
    const Edge& e = m.edges[i];
    const int a = m.point_slot[e.start], b = m.point_slot[e.end], f = m.frame_slot[e.frame];
    Vec3 along = q.x[e.end] - q.x[e.start], z_along = z[b] - z[a];
    const double length = norm(along);
    Vec3 d = (1 / length) * along, u = column(q.R[e.frame], 2);
    // stretch stiffness and damping
    const double tension_bar = dot(z_along, d), rate = e.damping * p.rate;
    const double change = (length - p.lengths[i]) / e.length;
    bars.stretch[i] += (length / e.length - 1) * tension_bar;
    bars.stretch_damping[i] += change * p.rate * tension_bar;
    // shear stiffness
    Vec3 force = (-1 / length) * (u - dot(d, u) * d);
    const double c_bar = dot(z_along, force) + dot(z[f], cross(d, u));
    bars.shear[i] += 0.5 * e.length * c_bar;
    // rest length                                                                       (ROD-30)
    const double slope = -(e.stretch * length / e.length + rate * change) / e.length;
    bars.length[i] += slope * tension_bar + 0.5 * e.shear * c_bar;
    // earlier positions, through the rate
    for (int j = 0; j < 2; j++) {
      Vec3 before = p.past[j]->x[e.end] - p.past[j]->x[e.start];
      const double length_bar = -rate * p.scheme.lag[j] / e.length * tension_bar;
      Vec3 before_bar = (length_bar / norm(before)) * before;
      (*bars.past[j])[b] += before_bar;
      (*bars.past[j])[a] += -before_bar;
    }
  }
}

}  // namespace mujacobian::rods

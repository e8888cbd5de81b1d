// Bending and twist between neighbouring edges of rods.
#include "rods/algebra.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

Vec3 times(Vec3 a, Vec3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }

// The second frame as the first sees it
Mat3 relative(const Bend& b, const State& q) {
  return transposed_times(q.R[b.first], q.R[b.second]);
}

// Darboux vector of such a rotation                                                     (ROD-15)
Vec3 darboux(const Bend& b, const Mat3& Q) { return (0.5 / b.length) * axial(Q); }

// d(darboux)/d(second frame); minus that with respect to the first                      (ROD-16)
Mat3 darboux_jacobian(const Bend& b, const State& q, const Mat3& Q) {
  Mat3 J = difference(scaled_identity(trace(Q)), Q);
  return (0.5 / b.length) * times_transposed(J, q.R[b.first]);
}

// Moment over length: derivative of the potential's density with respect to the Darboux vector
Vec3 stress(const Problem& p, size_t i, Vec3 omega) {
  const Bend& b = p.model.bends[i];
  Vec3 elastic = times(b.stiffness, omega - load3(p.inputs.rest + 3 * i));
  return elastic + (1 / p.model.timestep) * times(b.damping, omega - p.curvatures[i]);
}

}  // namespace

Vec3 darboux(const Bend& b, const State& q) { return darboux(b, relative(b, q)); }

void add_bends(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.bends.size(); i++) {
    const Bend& b = m.bends[i];
    Mat3 Q = relative(b, q);
    Vec3 omega = darboux(b, Q);
    Vec3 strain = omega - load3(p.inputs.rest + 3 * i), change = omega - p.curvatures[i];
    sum.add(0.5 * b.length * dot(strain, times(b.stiffness, strain)));
    sum.add(0.5 * b.length / m.timestep * dot(change, times(b.damping, change)));
    if (!sum.gradient && !sum.hessian) continue;
    const int first = m.frame_slot[b.first], second = m.frame_slot[b.second];
    Mat3 J = darboux_jacobian(b, q, Q);
    Vec3 moment = b.length * stress(p, i, omega);
    if (sum.gradient) {
      Vec3 torque = transpose_mul(J, moment);
      (*sum.gradient)[second] += torque;
      (*sum.gradient)[first] += -torque;
    }
    if (!sum.hessian) continue;
    Mat3 KJ = J;  // stiffness times Jacobian
    Vec3 K = b.length * (b.stiffness + (1 / m.timestep) * b.damping);
    for (int c = 0; c < 3; c++) KJ(0, c) *= K.x, KJ(1, c) *= K.y, KJ(2, c) *= K.z;
    Mat3 gauss = transposed_times(J, KJ);
    // the second derivative of moment . darboux = tr(N) / (2 length)                    (ROD-17)
    Mat3 N = (-0.5 / b.length) * (q.R[b.second] * times_transposed(skew(moment), q.R[b.first]));
    Mat3 excess = difference(N, scaled_identity(trace(N)));
    Mat3 own = gauss + symmetric_part(excess);
    sum.hessian->add(first, first, own);
    sum.hessian->add(second, second, own);
    sum.hessian->add(first, second, (-1.0) * (gauss + excess));
  }
}

void pull_back_bends(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.bends.size(); i++) {
    const Bend& b = m.bends[i];
    const int first = m.frame_slot[b.first], second = m.frame_slot[b.second];
    Mat3 Q = relative(b, q);
    Vec3 s = b.length * (darboux_jacobian(b, q, Q) * (z[second] - z[first]));
    Vec3 strain = darboux(b, Q) - load3(p.inputs.rest + 3 * i);
    bars.bend[i] += times(s, strain);
    if (bars.rest) store3(bars.rest + 3 * i, load3(bars.rest + 3 * i) - times(b.stiffness, s));
    Vec3 before_bar = (-1 / m.timestep) * times(b.damping, s);
    Mat3 J = darboux_jacobian(b, p.previous, relative(b, p.previous));
    Vec3 turned = transpose_mul(J, before_bar);
    bars.previous[second] += turned;
    bars.previous[first] += -turned;
  }
}

}  // namespace mujacobian::rods

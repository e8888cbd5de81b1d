// Bending and twist between neighbouring edges of rods.
#include "rods/algebra.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

Vec3 times(Vec3 a, Vec3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }

// The two frames of a bend, and the second as the first sees it
struct Joint {
  const Bend& bend;
  int first, second;  // slots
  const Mat3 &A, &B;
  Mat3 Q;

  Joint(const Model& m, const Bend& b, const State& q)
      : bend(b),
        first(m.frame_slot[m.edges[b.first].frame]),
        second(m.frame_slot[m.edges[b.second].frame]),
        A(q.R[m.edges[b.first].frame]),
        B(q.R[m.edges[b.second].frame]),
        Q(transposed_times(A, B)) {}

  // Darboux vector                                                                      (ROD-15)
  Vec3 darboux() const { return (0.5 / bend.length) * axial(Q); }

  // d(darboux)/d(second frame); minus that with respect to the first                    (ROD-16)
  Mat3 jacobian() const {
    return (0.5 / bend.length) * times_transposed(difference(scaled_identity(trace(Q)), Q), A);
  }
};

}  // namespace

Vec3 darboux(const Model& m, const Bend& b, const State& q) { return Joint(m, b, q).darboux(); }

void add_bends(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.bends.size(); i++) {
    const Bend& b = m.bends[i];
    Joint joint(m, b, q);
    Vec3 omega = joint.darboux(), viscosity = (1 / m.timestep) * b.damping;
    Vec3 strain = omega - load3(p.inputs.rest + 3 * i), change = omega - p.curvatures[i];
    Vec3 elastic = times(b.stiffness, strain), viscous = times(viscosity, change);
    sum.add(0.5 * b.length * dot(strain, elastic));
    sum.add(0.5 * b.length * dot(change, viscous));
    if (!sum.gradient && !sum.hessian) continue;
    Mat3 J = joint.jacobian();
    Vec3 moment = b.length * (elastic + viscous);
    if (sum.gradient) {
      Vec3 torque = transpose_mul(J, moment);
      (*sum.gradient)[joint.second] += torque;
      (*sum.gradient)[joint.first] += -torque;
    }
    if (!sum.hessian) continue;
    Mat3 KJ = J;  // stiffness times Jacobian
    Vec3 K = b.length * (b.stiffness + viscosity);
    for (int c = 0; c < 3; c++) KJ(0, c) *= K.x, KJ(1, c) *= K.y, KJ(2, c) *= K.z;
    Mat3 gauss = transposed_times(J, KJ);
    // the second derivative of moment . darboux = tr(N) / (2 length)                    (ROD-17)
    Mat3 N = (-0.5 / b.length) * (joint.B * times_transposed(skew(moment), joint.A));
    Mat3 excess = difference(N, scaled_identity(trace(N)));
    Mat3 own = gauss + symmetric_part(excess);
    sum.hessian->add(joint.first, joint.first, own);
    sum.hessian->add(joint.second, joint.second, own);
    sum.hessian->add(joint.first, joint.second, (-1.0) * (gauss + excess));
  }
}

void pull_back_bends(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.bends.size(); i++) {
    const Bend& b = m.bends[i];
    Joint joint(m, b, q);
    Vec3 omega = joint.darboux(), viscosity = (1 / m.timestep) * b.damping;
    Vec3 strain = omega - load3(p.inputs.rest + 3 * i), change = omega - p.curvatures[i];
    // derivative with respect to the moment over the length
    Vec3 s = b.length * (joint.jacobian() * (z[joint.second] - z[joint.first]));
    bars.bend[i] += times(s, strain);
    bars.bend_damping[i] += (1 / m.timestep) * times(s, change);
    if (bars.rest) store3(bars.rest + 3 * i, load3(bars.rest + 3 * i) - times(b.stiffness, s));
    // both Darboux vectors are angles over the length                                   (ROD-30)
    Vec3 slope = (-1 / b.length) * (times(b.stiffness, omega) + times(viscosity, change));
    bars.length[b.first] += 0.5 * dot(s, slope);
    bars.length[b.second] += 0.5 * dot(s, slope);
    Vec3 turned = transpose_mul(Joint(m, b, p.previous).jacobian(), -1.0 * times(viscosity, s));
    bars.previous[joint.second] += turned;
    bars.previous[joint.first] += -turned;
  }
}

}  // namespace mujacobian::rods

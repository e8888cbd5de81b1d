// Potentials of bending and twist between adjacent edges of rods.
#include "rods/algebra.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

// Componentwise product
Vec3 times(Vec3 a, Vec3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }

// The two frames of a bend, and their relative rotation Q = A^T B
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

  // Derivative of the Darboux vector with respect to the second frame. The derivative with respect
  // to the first frame is its negative.                                                 (ROD-16)
  Mat3 jacobian() const {
    return (0.5 / bend.length) * times_transposed(difference(scaled_identity(trace(Q)), Q), A);
  }
};

// Deformation of a bend at the end of a step
struct Deformation {
  Vec3 omega;      // Darboux vector
  Vec3 strain;     // difference from the rest shape
  Vec3 change;     // difference from the beginning of the step
  Vec3 viscosity;  // damping / time step

  Deformation(const Problem& p, size_t i, const Joint& joint)
      : omega(joint.darboux()),
        strain(omega - load3(p.inputs.rest + 3 * i)),
        change(omega - p.curvatures[i]),
        viscosity((1 / p.model.timestep) * joint.bend.damping) {}
};

}  // namespace

Vec3 darboux(const Model& m, const Bend& b, const State& q) { return Joint(m, b, q).darboux(); }

void add_bends(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.bends.size(); i++) {
    const Bend& b = m.bends[i];
    Joint joint(m, b, q);
    Deformation d(p, i, joint);
    Vec3 elastic = times(b.stiffness, d.strain), viscous = times(d.viscosity, d.change);
    sum.add(0.5 * b.length * dot(d.strain, elastic));
    sum.add(0.5 * b.length * dot(d.change, viscous));
    if (!sum.gradient && !sum.hessian) continue;
    // gradient: opposite torques on the two frames
    Mat3 J = joint.jacobian();
    Vec3 moment = b.length * (elastic + viscous);
    if (sum.gradient) {
      Vec3 torque = transpose_mul(J, moment);
      (*sum.gradient)[joint.second] += torque;
      (*sum.gradient)[joint.first] += -torque;
    }
    if (!sum.hessian) continue;
    // Gauss-Newton part of the Hessian, J^T K J
    Mat3 KJ = J;
    Vec3 K = b.length * (b.stiffness + d.viscosity);
    for (int c = 0; c < 3; c++) KJ(0, c) *= K.x, KJ(1, c) *= K.y, KJ(2, c) *= K.z;
    Mat3 gauss = transposed_times(J, KJ);
    // second part of it: the second derivative of moment . darboux = tr(N) / (2 length) (ROD-17)
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
    Deformation d(p, i, joint);
    // cotangent of the sum of elastic and viscous moment
    Vec3 s = b.length * (joint.jacobian() * (z[joint.second] - z[joint.first]));
    // stiffness, damping and rest shape
    bars.bend[i] += times(s, d.strain);
    bars.bend_damping[i] += (1 / m.timestep) * times(s, d.change);
    if (bars.rest) store3(bars.rest + 3 * i, load3(bars.rest + 3 * i) - times(b.stiffness, s));
    // rest lengths: Darboux vectors are angles divided by the length                    (ROD-30)
    Vec3 slope = (-1 / b.length) * (times(b.stiffness, d.omega) + times(d.viscosity, d.change));
    bars.length[b.first] += 0.5 * dot(s, slope);
    bars.length[b.second] += 0.5 * dot(s, slope);
    // the state at the beginning of the step
    Vec3 turned = transpose_mul(Joint(m, b, p.previous).jacobian(), -1.0 * times(d.viscosity, s));
    bars.previous[joint.second] += turned;
    bars.previous[joint.first] += -turned;
  }
}

}  // namespace mujacobian::rods

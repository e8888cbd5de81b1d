// Potentials of bending and twist between adjacent edges of rods.
#include "rods/algebra.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

// Componentwise product
Vec3 times(Vec3 a, Vec3 b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }

// Slot of the frame of an edge, or -1 for a wall
int slot_of(const Model& m, int edge) { return edge < 0 ? -1 : m.frame_slot[m.edges[edge].frame]; }

// Axes of an edge, or of the wall
const Mat3& axes_of(const Model& m, const Bend& b, int edge, const State& q) {
  return edge < 0 ? b.wall : q.R[m.edges[edge].frame];
}

// The two frames of a bend, and their relative rotation Q = A^T B
struct Joint {
  const Bend& bend;
  int first, second;  // slots; -1 is a wall
  const Mat3 &A, &B;
  Mat3 Q;
  Vec3 a;      // axial(Q)
  double tau;  // 1 + tr(Q) = 4 cos(angle / 2)^2

  Joint(const Model& m, const Bend& b, const State& q)
      : bend(b),
        first(slot_of(m, b.first)),
        second(slot_of(m, b.second)),
        A(axes_of(m, b, b.first, q)),
        B(axes_of(m, b, b.second, q)),
        Q(transposed_times(A, B)),
        a(axial(Q)),
        tau(1 + trace(Q)) {}

  // Factor of axial(Q) in the Darboux vector                                   (ROD-15), (ROD-34)
  double factor() const { return (bend.is_tangent ? 2 / tau : 0.5) / bend.length; }

  Vec3 darboux() const { return factor() * a; }

  // Derivative of the Darboux vector with respect to the second frame. The derivative with respect
  // to the first frame is its negative.                                        (ROD-16), (ROD-35)
  Mat3 jacobian() const {
    Mat3 turned = difference(scaled_identity(trace(Q)), Q);
    if (bend.is_tangent) turned = turned + (1 / tau) * outer(a, a);
    return factor() * times_transposed(turned, A);
  }

  // Matrix N whose tr(exp(first)^T exp(second) N) has the second derivatives of moment . darboux,
  // up to those of `correction`                                                (ROD-17), (ROD-36)
  Mat3 pairing(Vec3 moment) const {
    Mat3 N = (-factor()) * (B * times_transposed(skew(moment), A));
    if (!bend.is_tangent) return N;
    return difference(N, (factor() * dot(moment, a) / tau) * times_transposed(B, A));
  }
  Mat3 correction(Vec3 moment) const {
    if (!bend.is_tangent) return Mat3{};
    // derivatives of moment . axial(Q) and of tau with respect to the second frame
    Vec3 of_moment = axial(B * times_transposed(skew(moment), A));
    Vec3 of_tau = -axial(times_transposed(B, A));
    Mat3 mixed = symmetric_part(outer(of_moment, of_tau));
    Mat3 squared = (dot(moment, a) / tau) * outer(of_tau, of_tau);
    return (2 * factor() / tau) * difference(squared, mixed);
  }

  // Returns the motion of the second frame relative to the first one
  Vec3 motion(const Tangent& z) const {
    Vec3 made{};
    if (second >= 0) made += z[second];
    if (first >= 0) made += -z[first];
    return made;
  }
  // Add opposite torques to the two frames
  void add_torque(Vec3 torque, Tangent& sum) const {
    if (second >= 0) sum[second] += torque;
    if (first >= 0) sum[first] += -torque;
  }
};

// Deformation of a bend at the end of a step
struct Deformation {
  Vec3 omega;      // Darboux vector
  Vec3 strain;     // difference from the rest shape
  Vec3 change;     // difference from the earlier shape that rates refer to
  Vec3 viscosity;  // damping times the weight of a rate

  Deformation(const Problem& p, size_t i, const Joint& joint)
      : omega(joint.darboux()),
        strain(omega - load3(p.inputs.rest + 3 * i)),
        change(omega - p.curvatures[i]),
        viscosity(p.rate * joint.bend.damping) {}
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
      joint.add_torque(transpose_mul(J, moment), *sum.gradient);
    }
    if (!sum.hessian) continue;
    // Gauss-Newton part of the Hessian, J^T K J
    Mat3 KJ = J;
    Vec3 K = b.length * (b.stiffness + d.viscosity);
    for (int c = 0; c < 3; c++) KJ(0, c) *= K.x, KJ(1, c) *= K.y, KJ(2, c) *= K.z;
    Mat3 gauss = transposed_times(J, KJ);
    // second part of it: the second derivative of moment . darboux              (ROD-17), (ROD-36)
    Mat3 N = joint.pairing(moment);
    Mat3 common = gauss + joint.correction(moment);
    Mat3 excess = difference(N, scaled_identity(trace(N)));
    Mat3 own = common + symmetric_part(excess);
    if (joint.first >= 0) sum.hessian->add(joint.first, joint.first, own);
    if (joint.second >= 0) sum.hessian->add(joint.second, joint.second, own);
    if (joint.first < 0 || joint.second < 0) continue;
    sum.hessian->add(joint.first, joint.second, (-1.0) * (common + excess));
  }
}

void pull_back_bends(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.bends.size(); i++) {
    const Bend& b = m.bends[i];
    Joint joint(m, b, q);
    Deformation d(p, i, joint);
    // cotangent of the sum of elastic and viscous moment
    Vec3 s = b.length * (joint.jacobian() * joint.motion(z));
    // stiffness, damping and rest shape
    bars.bend[i] += times(s, d.strain);
    bars.bend_damping[i] += p.rate * times(s, d.change);
    if (bars.rest) store3(bars.rest + 3 * i, load3(bars.rest + 3 * i) - times(b.stiffness, s));
    // rest lengths: Darboux vectors are angles divided by the length                    (ROD-30)
    Vec3 slope = (-1 / b.length) * (times(b.stiffness, d.omega) + times(d.viscosity, d.change));
    for (int edge : {b.first, b.second}) {
      if (edge >= 0) bars.length[edge] += 0.5 * dot(s, slope);
    }
    // earlier states, through the rate
    for (int j = 0; j < 2; j++) {
      Joint before(m, b, *p.past[j]);
      Vec3 omega_bar = (-p.scheme.lag[j]) * times(d.viscosity, s);
      before.add_torque(transpose_mul(before.jacobian(), omega_bar), *bars.past[j]);
    }
  }
}

}  // namespace mujacobian::rods

// Potentials of springs between points and of torsion springs between frames.
#include "rods/algebra.h"
#include "rods/lever.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

// Vector from the second to the first point of a spring, without the displacement by the input
Levers between(const Problem& p, const Spring& s, const State& q) {
  Levers w(p.model, q);
  w.add(s.first, 1);
  w.add(s.second, -1);
  return w;
}

// The same with the displacement: the vector whose square the energy contains
Vec3 stretched(const Problem& p, const Spring& s, const Levers& w) {
  if (s.target < 0 || !p.inputs.targets) return w.value();
  return w.value() - load3(p.inputs.targets + 3 * s.target);
}

// The two frames that a weld aligns
struct Pair {
  Mat3 A, B;

  Pair(const Weld& w, const State& q)
      : A(q.R[w.first] * w.first_axes),
        B(w.second < 0 ? w.second_axes : q.R[w.second] * w.second_axes) {}
};

}  // namespace

void add_springs(const Problem& p, const State& q, Sum& sum) {
  for (const Spring& s : p.model.springs) {
    Levers w = between(p, s, q);
    Vec3 gap = stretched(p, s, w);
    sum.add(0.5 * s.stiffness * dot(gap, gap),
            s.stiffness * norm(gap) * norm(position(s.first, q)));
    w.add_to(sum, s.stiffness * gap, scaled_identity(s.stiffness));
  }
}

void pull_back_springs(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  for (const Spring& s : p.model.springs) {
    Levers w = between(p, s, q);
    Vec3 motion = w.motion(z);
    bars.attachment[s.attachment] += dot(motion, stretched(p, s, w));
    if (s.target < 0 || !bars.targets) continue;
    double* bar = bars.targets + 3 * s.target;
    store3(bar, load3(bar) - s.stiffness * motion);
  }
}

// The energy is k/2 (3 - tr(A^T B))                                                     (ROD-18)
void add_welds(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (const Weld& w : m.welds) {
    Pair pair(w, q);
    Mat3 apart = difference(pair.A, pair.B);
    sum.add(0.25 * w.stiffness * inner(apart, apart));
    // for left perturbations a and b, the potential is a constant minus tr(exp(a)^T exp(b) N)
    Mat3 N = (0.5 * w.stiffness) * times_transposed(pair.B, pair.A);
    const int first = m.frame_slot[w.first];
    const int second = w.second < 0 ? -1 : m.frame_slot[w.second];
    if (sum.gradient) {
      Vec3 torque = axial(N);
      (*sum.gradient)[first] += -torque;
      if (second >= 0) (*sum.gradient)[second] += torque;
    }
    if (!sum.hessian) continue;
    Mat3 excess = difference(scaled_identity(trace(N)), N);
    Mat3 own = symmetric_part(excess);
    sum.hessian->add(first, first, own);
    if (second < 0) continue;
    sum.hessian->add(second, second, own);
    sum.hessian->add(first, second, (-1.0) * excess);
  }
}

void pull_back_welds(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  for (const Weld& w : m.welds) {
    Pair pair(w, q);
    Vec3 motion = -z[m.frame_slot[w.first]];
    if (w.second >= 0) motion += z[m.frame_slot[w.second]];
    bars.attachment[w.attachment] += 0.5 * dot(motion, axial(times_transposed(pair.B, pair.A)));
  }
}

}  // namespace mujacobian::rods

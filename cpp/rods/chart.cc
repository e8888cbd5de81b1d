// The coordinates of the unknowns, left perturbations of rotations: the motion of a state along
// them, and the derivatives of the potential with respect to them. benchmarks/rods replaces this
// file by rotation vectors.
#include <algorithm>

#include "rods/algebra.h"
#include "rods/problem.h"

namespace mujacobian::rods {

void move(const Model& m, const State& q, const Tangent& d, double scale, State& moved) {
  for (size_t i = 0; i < q.x.size(); i++) moved.x[i] = q.x[i] + scale * d[m.point_slot[i]];
  for (size_t i = 0; i < q.R.size(); i++) {
    moved.R[i] = rotation_exp(scale * d[m.frame_slot[i]]) * q.R[i];
  }
}

void evaluate(const Problem& p, const State& q, Sum& sum) {
  sum.energy = sum.magnitude = sum.leverage = 0;
  if (sum.gradient) std::fill(sum.gradient->begin(), sum.gradient->end(), Vec3{});
  if (sum.hessian) sum.hessian->clear();
  add_points(p, q, sum);
  add_frames(p, q, sum);
  add_elements(p, q, sum);
}

}  // namespace mujacobian::rods

#include "rods/lever.h"

#include "rods/algebra.h"

namespace mujacobian::rods {

void Levers::add_point(int point, double sign) {
  value_ += sign * state_.x[point];
  push({model_.point_slot[point], scaled_identity(sign), {}, false, false});
}

void Levers::add(const MaterialPoint& p, double sign) {
  for (int k = 0; k < 2; k++) {
    if (p.point[k] >= 0) add_point(p.point[k], sign * p.weight[k]);
  }
  if (p.frame < 0) {
    value_ += sign * p.offset;
    return;
  }
  add_arm(p.frame, sign * (state_.R[p.frame] * p.offset));
}

void Levers::add_arm(int frame, Vec3 arm) {
  value_ += arm;
  push({model_.frame_slot[frame], skew(-arm), arm, true, false});
}

void Levers::express_in(int frame) {
  push({model_.frame_slot[frame], skew(value_), value_, true, true});
}

Vec3 Levers::motion(const Tangent& z) const {
  Vec3 sum{};
  for (int i = 0; i < count_; i++) sum += levers_[i].jacobian * z[levers_[i].slot];
  return sum;
}

void Levers::pull_back(Vec3 bar, Tangent& bars) const {
  for (int i = 0; i < count_; i++) {
    bars[levers_[i].slot] += transpose_mul(levers_[i].jacobian, bar);
  }
}

Vec3 Levers::gradient(int slot, Vec3 bar) const {
  Vec3 sum{};
  for (int i = 0; i < count_; i++) {
    if (levers_[i].slot == slot) sum += transpose_mul(levers_[i].jacobian, bar);
  }
  return sum;
}

Mat3 Levers::mixed(const Lever& a, const Lever& b, Vec3 gradient, const Mat3& hessian) const {
  Mat3 inner = hessian * b.jacobian;
  if (b.is_observer) inner = difference(inner, skew(gradient));
  return transposed_times(a.jacobian, inner);
}

void Levers::add_to(Sum& sum, Vec3 gradient, const Mat3& hessian) const {
  if (sum.gradient) pull_back(gradient, *sum.gradient);
  if (!sum.hessian) return;
  for (int i = 0; i < count_; i++) {
    const Lever& a = levers_[i];
    Mat3 own = transposed_times(a.jacobian, hessian * a.jacobian);
    if (a.is_frame) own = own + bend_of_arc(a.arm, gradient);
    sum.hessian->add(a.slot, a.slot, own);
    for (int j = i + 1; j < count_; j++) {  // the observer is the last one
      const Lever& b = levers_[j];
      Mat3 block = mixed(a, b, gradient, hessian);
      if (a.slot == b.slot) block = block + transposed(block);
      sum.hessian->add(a.slot, b.slot, block);
    }
  }
}

Vec3 position(const MaterialPoint& p, const State& q) {
  Vec3 sum = p.frame < 0 ? p.offset : q.R[p.frame] * p.offset;
  for (int k = 0; k < 2; k++) {
    if (p.point[k] >= 0) sum += p.weight[k] * q.x[p.point[k]];
  }
  return sum;
}

void list_slots(const Model& m, const MaterialPoint& p, std::vector<int>& slots) {
  for (int point : p.point) {
    if (point >= 0) slots.push_back(m.point_slot[point]);
  }
  if (p.frame >= 0) slots.push_back(m.frame_slot[p.frame]);
}

}  // namespace mujacobian::rods

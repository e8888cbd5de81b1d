// How a vector between material points follows the unknowns, and the chain rule for potentials that
// depend on it.
#pragma once

#include "rods/problem.h"

namespace mujacobian::rods {

// A vector w made of material points, or seen from a turning body, with its derivatives with
// respect to the slots that move it (ROD-6)
class Levers {
 public:
  Levers(const Model& m, const State& q) : model_(m), state_(q) {}

  // w += sign * point
  void add(const MaterialPoint& point, double sign);
  // w += sign * x[point]
  void add_point(int point, double sign);
  // The potential is a function of R[frame]^T w: it also follows the frame                (ROD-8)
  void seen_from(int frame);

  Vec3 value() const { return value_; }
  // Derivative of w along z, or of w with the frame it is seen from held still
  Vec3 motion(const Tangent& z) const;
  // Add a potential with this gradient and Hessian with respect to w
  void add_to(Sum& sum, Vec3 gradient, const Mat3& hessian) const;
  // Add the derivatives of a scalar with this derivative with respect to w
  void pull_back(Vec3 bar, Tangent& bars) const;

 private:
  struct Lever {
    int slot;
    Mat3 jacobian;
    Vec3 arm;  // of frames: what the frame turns
    bool turns, observes;
  };
  void push(const Lever& lever) { levers_[count_++] = lever; }
  Mat3 mixed(const Lever& a, const Lever& b, Vec3 gradient, const Mat3& hessian) const;

  const Model& model_;
  const State& state_;
  Vec3 value_{};
  Lever levers_[8];
  int count_ = 0;
};

// Position of a material point
Vec3 position(const MaterialPoint& point, const State& q);

}  // namespace mujacobian::rods

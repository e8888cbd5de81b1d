// Derivatives of a vector between material points with respect to the unknowns, and the chain rule
// for potentials that depend on this vector.
#pragma once

#include "rods/problem.h"

namespace mujacobian::rods {

// A vector w that is a sum of material points, with its derivatives with respect to the slots that
// it depends on (ROD-6). A potential may depend on w in the axes of a rotating body.
class Levers {
 public:
  Levers(const Model& m, const State& q) : model_(m), state_(q) {}

  // w += sign * point
  void add(const MaterialPoint& point, double sign);
  // w += sign * x[point]
  void add_point(int point, double sign);
  // w += arm, a vector that rotates with a frame
  void add_arm(int frame, Vec3 arm);
  // Express w in the axes of a frame: the potential is a function of R[frame]^T w         (ROD-8)
  void express_in(int frame);

  Vec3 value() const { return value_; }
  // Returns the derivative of w along z, relative to the frame of express_in
  Vec3 motion(const Tangent& z) const;
  // Add the gradient and Hessian of a potential, given those with respect to w
  void add_to(Sum& sum, Vec3 gradient, const Mat3& hessian) const;
  // Add the cotangents of the slots, given the cotangent of w
  void pull_back(Vec3 bar, Tangent& bars) const;
  // Returns the cotangent of one slot
  Vec3 gradient(int slot, Vec3 bar) const;

 private:
  struct Lever {
    int slot;
    Mat3 jacobian;
    Vec3 arm;          // of frames: the vector that rotates with the frame
    bool is_frame;     // rather than a point
    bool is_observer;  // the frame of express_in
  };
  void push(const Lever& lever) { levers_[count_++] = lever; }
  // Returns the block of the Hessian with the rows of a and the columns of b
  Mat3 mixed(const Lever& a, const Lever& b, Vec3 gradient, const Mat3& hessian) const;

  const Model& model_;
  const State& state_;
  Vec3 value_{};
  Lever levers_[8];
  int count_ = 0;
};

// Returns the position of a material point
Vec3 position(const MaterialPoint& point, const State& q);

// Append the slots that a material point depends on
void list_slots(const Model& m, const MaterialPoint& point, std::vector<int>& slots);

}  // namespace mujacobian::rods

// Points as seen from a moving body: their positions, their velocities in a virtual motion, and the
// first two derivatives of both with respect to the dofs. docs/derivations/second_order.md.
#pragma once

#include "layout/arena.h"
#include "tree/point.h"

namespace mujacobian {

inline constexpr int kMaxRelative = 2;

// The second derivative of a scalar function of the positions x and the virtual velocities u of
// some points in the axes of a body. The function is linear in u. All vectors are in world axes.
struct RelativeFunction {
  Vec3 by_position[kMaxRelative], by_velocity[kMaxRelative];  // first derivatives
  Mat3 positions[kMaxRelative][kMaxRelative];                 // with respect to x_i and x_j
  Mat3 mixed[kMaxRelative][kMaxRelative];                     // with respect to x_i and u_j
};

// One or two points of other bodies, as seen from the body `frame`.
class RelativePoints {
 public:
  // `virt` is a view at the virtual velocity. `position` has the points in the world.
  RelativePoints(const ModelView& m, const DataView& virt, int frame, int count, const int* body,
                 const Vec3* position, Arena& arena);

  // Returns the virtual velocity of a point relative to the body.
  Vec3 velocity(int point) const { return velocity_[point]; }

  // Adds `scale` times the second derivatives of a function of the points to `out` (n, n), where
  // `local` maps dofs to its rows and columns.                                            (HES-42)
  void add(const RelativeFunction& f, double scale, const int* local, double* out, int n) const;

 private:
  // The effect of one dof on all points. A point moves relative to the frame by sign times `slide`,
  // and its velocity changes by sign times `change`.
  struct Dof {
    int dof;
    Vec3 turn, turn_rate;  // the angular parts of S_k and of S^y_k
    double sign[kMaxRelative];
    Vec3 slide[kMaxRelative], drag[kMaxRelative], change[kMaxRelative];
  };
  double second(const RelativeFunction& f, const Dof& l, const Dof& k) const;

  const ModelView& m_;
  int count_, dof_count_;
  Dof* dofs_;
  Vec3 frame_turn_;  // the virtual angular velocity of the body
  Vec3 velocity_[kMaxRelative];
};

// The second derivatives of the root r = sqrt(x . Q x + constant) and of y . dr/dx, for a point x.
// (HES-44)
struct RootCurvature {
  Mat3 root;   // of r
  Mat3 slope;  // of y . dr/dx
};
// `g` is dr/dx = Q x / r.
RootCurvature root_curvature(const Mat3& Q, double r, Vec3 g, Vec3 y);

}  // namespace mujacobian

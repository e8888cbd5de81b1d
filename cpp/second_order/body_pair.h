// Second derivatives of functions of the poses, velocities, accelerations and virtual velocities of
// two bodies. docs/derivations/second_order.md.
#pragma once

#include "contact/wrench.h"
#include "spatial/dual.h"
#include "tree/motion.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// A number with its derivative along one variable.
using PairNumber = Dual<1>;
using PairVec = Vec3T<PairNumber>;

inline PairNumber with(double value, double derivative) {
  PairNumber x(value);
  x.d[0] = derivative;
  return x;
}
inline PairVec with(Vec3 value, Vec3 change) {
  return {with(value.x, change.x), with(value.y, change.y), with(value.z, change.z)};
}
inline MotionT<PairNumber> with(Motion value, Motion change) {
  return {with(value.ang, change.ang), with(value.lin, change.lin)};
}

// A force of such numbers, about the common point.
struct PairForce {
  PairVec ang{0, 0, 0}, lin{0, 0, 0};
};

// The motions of both bodies about the common point.
struct BodyPair {
  Motion of[2];
};

// The state of the two bodies, or its change along one variable: poses (as motions), velocities,
// accelerations with those of the joints, and virtual velocities.
struct PairState {
  BodyPair pose, velocity, acceleration, virt;
};

// The derivative of the function with respect to these.
struct PairCotangent {
  PairForce pose[2], velocity[2], acceleration[2], virt[2];
};

// One dof of the pair: its axis and the rates of its axis, about the common point.
struct PairDof {
  Motion axis, axis_dot, second, sum, axis_virtual;
};

// Two bodies and the dofs that move them.
struct Pair {
  ContactDofs c;
  PairState at;
  const PairDof* dof;

  bool moves(int k, int s) const { return c.moves[k] >> s & 1; }
};

// Returns the pair about the point p, at the accelerations of a sweep. `virt` has the virtual
// velocities of the bodies, and `virt_rate` the rates of the axes at them; null: zero.
Pair make_pair(const ModelView& m, const DataView& d, const int body[2], Vec3 p,
               const MotionSweep& sweep, const Motion* virt, const Motion* virt_rate, Arena& arena);

// A function of the state of two bodies.
class PairFunction {
 public:
  virtual ~PairFunction() = default;
  // Returns its first derivative, with the change along a change `by` of the state.
  virtual PairCotangent derivative(const PairState& by) const = 0;
};

// Adds the second derivatives of a function. The rows `mixed` of the form belong to the
// accelerations of the joints; null: the accelerations of the bodies are without them.    (HES-38)
void add_pair_function(const ModelView& m, const Pair& p, const PairFunction& f,
                       const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian

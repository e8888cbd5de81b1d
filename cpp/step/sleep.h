// Sleeping trees in the derivative of a step. A sleeping tree does not move, like a part of the
// world; a change of its state wakes it, which is another branch. A tree that falls asleep in a
// step keeps its position and loses its velocity. docs/derivations/integrators.md.
#pragma once

#include "layout/arena.h"
#include "step/transition.h"

namespace mujacobian {

// The trees that do not move in a step.
class Sleep {
 public:
  // Finds these trees after mj_forward. Throws Unsupported if they have no derivative. `wanted` are
  // the sensors whose derivatives are wanted (null: all), if `senses` is true.
  Sleep(const ModelView& m, const DataView& d, bool senses, const unsigned char* wanted,
        Arena& arena);

  // Returns whether all trees stay awake.
  bool is_empty() const { return !dof_; }

  // Returns `d`, or a view in which sleeping trees have neither acceleration nor forces.
  const DataView& at_rest(const ModelView& m, const DataView& d, Arena& arena) const;

  // Sets the rows and columns of the trees in the blocks of a step.                      (INT-13)
  void hold(const ModelView& m, const Outputs& out) const;

  // Returns a tangent without the entries of sleeping trees, and replaces its result.
  const double* without_asleep(const double* x, int copies, int nv, int size, Arena& arena) const;
  void hold_tangent(const ModelView& m, const double* state, double* next) const;

  // Returns a cotangent without the entries of all these trees, and completes its result.
  const double* without_still(const double* x, int nv, int size, Arena& arena) const;
  void hold_cotangent(const ModelView& m, const double* next, double* state, double* force) const;

 private:
  enum State : unsigned char { kAwake, kAsleep, kFalling };
  const State* dof_ = nullptr;  // per dof; null: all trees stay awake
};

}  // namespace mujacobian

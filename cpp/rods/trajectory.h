// Simulation of many steps, and the gradient of a scalar with respect to their inputs.
#pragma once

#include "rods/newton.h"

namespace mujacobian::rods {

// Inputs of all steps, one row per step. `rest` has one row for all steps or one per step.
struct InputRows {
  const double *forces, *torques, *tensions, *rest, *targets;
  bool rest_per_step;

  Inputs at(const Model& m, int step) const;
};

// States before the first and after each step: (T + 1, points, 3) and (T + 1, frames, 3, 3).
struct StateRows {
  const double *positions, *rotations;

  void get(const Model& m, int row, State& q) const;
};

// Take T steps from the state in row 0, given the state `before` it (ROD-40). Write their states
// into the following rows, and one report per step. Returns the number of steps, which is less than
// T if a step fails and not `persist`.
int simulate(const Model& m, const State& before, int T, const InputRows& inputs,
             const Options& options, bool persist, double* positions, double* rotations,
             Report* reports);

// Cotangents of the inputs of all steps; null if not needed.
struct InputBars {
  double *forces, *torques, *tensions, *rest, *targets;
};

// Reverse pass over all steps (ROD-26). Given are the cotangents of all states (`given`, one
// tangent per row) and of the last change of state (`given_step`). Adds the cotangents of the
// inputs, which the caller has set to zero, and of the parameters (`bars`). Writes those of the
// first state, of the points before it (`before_bar`), of the matrices of the frames before it
// (`bars.ambient`), and the norms of the cotangents of each state and the changes before it into
// `norms` (T + 1). Throws std::runtime_error if a Hessian is singular.
void pull_back_steps(const Model& m, const State& before, int T, const InputRows& inputs,
                     const StateRows& states, const std::vector<Tangent>& given,
                     const Tangent& given_step, const InputBars& input_bars, double* norms,
                     Bars& bars, Tangent& first_bar, Tangent& before_bar);

}  // namespace mujacobian::rods

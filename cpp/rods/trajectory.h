// Many steps, and the gradient of a scalar through them.
#pragma once

#include "rods/newton.h"

namespace mujacobian::rods {

// Inputs of all steps, row by row. `rest` has one row for all steps or one per step.
struct InputRows {
  const double *forces, *torques, *tensions, *rest, *targets;
  bool rest_per_step;

  Inputs at(const Model& m, int step) const;
};

// States of all steps, the first one included: (T + 1, points, 3) and (T + 1, frames, 3, 3).
struct StateRows {
  const double *positions, *rotations;

  void get(const Model& m, int row, State& q) const;
};

// Take T steps from the state in row 0, into the rows after it, with one report each. Returns the
// number of steps taken: fewer than T if one fails, unless `persist`.
int simulate(const Model& m, const State& first_step, int T, const InputRows& inputs,
             const Options& options, bool persist, double* positions, double* rotations,
             Report* reports);

// Derivatives of a scalar with respect to the inputs of all steps; null: not wanted.
struct InputBars {
  double *forces, *torques, *tensions, *rest, *targets;
};

// Given the derivatives of a scalar with respect to all states, rows of tangents by slot, and to
// the last step, write its derivatives with respect to inputs (set to zero by the caller) and, into
// `bars`, to parameters, first state and first step. norms: (T + 1). (ROD-26) Throws
// std::runtime_error where a Hessian is singular.
void pull_back_steps(const Model& m, const State& first_step, int T, const InputRows& inputs,
                     const StateRows& states, const std::vector<Tangent>& given,
                     const Tangent& given_step, const InputBars& input_bars, double* norms,
                     Bars& bars);

}  // namespace mujacobian::rods

// MuJoCo's noslip solver: after the optimum, Gauss-Seidel sweeps update the friction forces without
// their regularization, while all other forces are fixed. This file repeats the sweeps and
// differentiates them as they were executed. docs/derivations/noslip.md.
#pragma once

#include "constraint/friction_block.h"
#include "constraint/optimum.h"

namespace mujacobian {

// An update of the forces of a friction block by `delta`.
struct FrictionUpdate {
  enum Outcome {
    kInside,  // the force is within its bounds
    kLow,     // at its lower bound
    kHigh,    // at its upper bound
    kZero,    // set to zero, because A is too small
    kCone,    // solution of the problem of a cone
  } outcome;
  int friction;  // index of the friction block
  double delta[kMaxFriction];
  const Qcqp* qcqp;  // for a cone
  FrictionUpdate* next;
};

struct Noslip {
  double* acc;               // after the sweeps
  double* force;             // J^T f after the sweeps
  FrictionBlock* frictions;  // all friction blocks, in the order of the sweeps
  int count;
  const FrictionUpdate* first;  // every update that changed a force, in the order of execution

  // written by differentiate_noslip, for sensors
  DofRows start;    // d(acc) at the optimum
  double** dforce;  // per friction block: d(force) after the sweeps, (rows, columns)
};

// Repeats MuJoCo's sweeps from the optimum. Throws Unsupported if the forces differ from MuJoCo's.
Noslip sweep_noslip(const ModelView& m, const DataView& d, const Blocks& blocks,
                    const Optimum& optimum, Arena& arena);

// Replaces the rows of component c of `residual`, d(acc) at the optimum, by d(acc) after the
// sweeps.
void differentiate_noslip(const ModelView& m, const DataView& d, const Topology& tree,
                          const Blocks& blocks, const Optimum& optimum, const Noslip& noslip,
                          const DofRows& residual, int c, Arena& arena);

}  // namespace mujacobian

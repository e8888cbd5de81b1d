// MuJoCo's noslip solver: after the optimum, Gauss-Seidel sweeps over the friction forces that
// ignore their regularization and leave all other forces as they are. Executed again here, and
// differentiated as executed. docs/derivations/noslip.md.
#pragma once

#include "constraint/friction_block.h"
#include "constraint/optimum.h"

namespace mujacobian {

// An update of a friction block's forces by `delta`.
struct FrictionUpdate {
  enum Outcome { kInside, kLow, kHigh, kZero, kCone } outcome;
  int friction;
  double delta[kMaxFriction];
  const Qcqp* qcqp;  // of a cone
  FrictionUpdate* next;
};

struct Noslip {
  double* acc;               // after the sweeps
  double* force;             // J^T f after the sweeps
  FrictionBlock* frictions;  // what the sweeps go over
  int count;
  const FrictionUpdate* first;  // every update that changed a force, in the order of execution

  // written by the derivative, for sensors
  DofRows start;    // d(acc) at the optimum
  double** dforce;  // of each friction block after the sweeps, (rows, columns of its component)
};

// Repeat MuJoCo's sweeps from the optimum. Throws Unsupported if they end elsewhere.
Noslip sweep_noslip(const ModelView& m, const DataView& d, const Blocks& blocks,
                    const Optimum& optimum, Arena& arena);

// Turn the rows of component c of `residual` from d(acc) at the optimum into d(acc) after the
// sweeps.
void differentiate_noslip(const ModelView& m, const DataView& d, const Topology& tree,
                          const Blocks& blocks, const Optimum& optimum, const Noslip& noslip,
                          const DofRows& residual, int c, Arena& arena);

}  // namespace mujacobian

// Forward dynamics of a state and its derivative: the acceleration a that solves
//   g(a) = ID(q, v, a) - tau - J^T f(J a - aref) = 0,   K da = -dg,
// followed by the noslip solver, if it is enabled.
#pragma once

#include "constraint/effective_diagonal.h"
#include "constraint/noslip.h"
#include "dynamics/metric.h"

namespace mujacobian {

struct ForwardDynamics {
  Topology tree;
  PathForces paths;
  Blocks blocks;
  StepMetric metric;        // the constraint problem, in the metric of the discrete integrator
  Optimum optimum;          // solution in the constrained components
  Noslip noslip;            // sweeps of the noslip solver after it
  const double* solved;     // acceleration that solves g(a) = 0
  const double* acc;        // constrained acceleration: the same, unless noslip changes it
  const double* force;      // total generalized force, M acc
  const bool* constrained;  // per component: it has rows of the constraint problem
  double solver_error;      // distance of MuJoCo's qacc from acc: dynamics/convergence.h
  double collider_error;    // distance of the caller's qacc, due to its contacts
  DofRows residual;         // zero, except for the columns of applied force
};

// Returns the paths and constraint rows of the state, and the components that they couple. The
// contact features are copied from `known`, blocks of the same rows, if it is not null.
ForwardDynamics start_forward(const ModelView& m, const DataView& d, bool forces,
                              const Blocks* known, Arena& arena);

// Evaluates the state. `forces` asks for the columns of qfrc_applied.
ForwardDynamics evaluate_forward(const ModelView& m, const DataView& d, bool forces, Arena& arena);

// Fills the residual with -dg at acceleration `at`, which is f.solved in constrained components.
void fill_residual(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                   const double* at, Arena& arena);

// Return whether the metric of the discrete integrator corrects R of constraint rows, and the
// derivatives that this correction depends on.                                              (DIS-8)
bool corrects_rows(const ModelView& m, const DataView& d, const ForwardDynamics& f);
DiagonalRates diagonal_rates(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             Arena& arena);

// Replaces -dg by da in columns first .. last-1 of component c.
void solve_acceleration(const ModelView& m, const DataView& d, const ForwardDynamics& f, int c,
                        int first, int last, Arena& arena);

// The same with K transposed, for one column. The noslip solver must be off.
void solve_acceleration_transposed(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                                   int c, Arena& arena);

}  // namespace mujacobian

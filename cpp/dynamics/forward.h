// Forward dynamics of a state and its derivative: the acceleration a that solves
//   g(a) = ID(q, v, a) - tau - J^T f(J a - aref) = 0,   K da = -dg,
// and what the noslip solver makes of it.
#pragma once

#include "constraint/effective_diagonal.h"
#include "constraint/noslip.h"
#include "dynamics/metric.h"

namespace mujacobian {

struct ForwardDynamics {
  Topology tree;
  PathForces paths;
  Blocks blocks;
  StepMetric metric;        // of the discrete integrator, the constraint problem's
  Optimum optimum;          // of the constrained components
  Noslip noslip;            // what follows it
  const double* solved;     // the acceleration that solves g
  const double* acc;        // the constrained acceleration: the same, unless noslip changes it
  const double* force;      // the total generalized force, M acc
  const bool* constrained;  // per component: solved by the optimum
  double solver_error;      // distance of MuJoCo's qacc from acc: dynamics/convergence.h
  double collider_error;    // that of the caller's qacc, due to contacts that MuJoCo found
  DofRows residual;         // zero, but for the columns of applied force
};

// What acts in the state: paths, rows and what they couple. The geometry of contacts is taken from
// `known`, blocks of the same rows, where that is not null.
ForwardDynamics start_forward(const ModelView& m, const DataView& d, bool forces,
                              const Blocks* known, Arena& arena);

// Evaluate the state; `forces` asks for the columns of qfrc_applied.
ForwardDynamics evaluate_forward(const ModelView& m, const DataView& d, bool forces, Arena& arena);

// Fill the residual with -dg: at acceleration `at`, which is f.solved in constrained components.
void fill_residual(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                   const double* at, Arena& arena);

// The metric of the discrete integrator corrects R of constraint rows, and by what.         (DIS-8)
bool corrects_rows(const ModelView& m, const DataView& d, const ForwardDynamics& f);
DiagonalRates diagonal_rates(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             Arena& arena);

// Columns first .. last-1 of component c: -dg becomes da.
void solve_acceleration(const ModelView& m, const DataView& d, const ForwardDynamics& f, int c,
                        int first, int last, Arena& arena);

// The same with K transposed, for one column; not where noslip changes the acceleration.
void solve_acceleration_transposed(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                                   int c, Arena& arena);

}  // namespace mujacobian

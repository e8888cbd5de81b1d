// The differential of one step: the right-hand sides and factors of the two linear systems from
// which A and B, or products with them, are made.
//   K d(acc) = -dg,   (M + h Dhat) dw = M d(acc) + step_rows,   v+ = v + h w              (INT-10)
#pragma once

#include "step/integrator.h"

namespace mujacobian {

struct StepDifferential {
  ForwardDynamics forward;  // with -dg as its residual
  Integration step;
  DofRows step_rows;  // right-hand side of the second system, or the residual itself
  const double* at;   // acceleration at which g is differentiated: the optimum, or w without d(acc)
  const double* lag;  // w - acc if d(acc) is solved for, otherwise 0
  bool two_systems;  // step_rows is a matrix of its own, and all components solve the second system
  bool senses;       // sensors need d(acc) of all components

  // The first system is solved for component c. A component without constraints skips it: g is
  // differentiated at w, and step_rows contains the whole right-hand side.
  bool solves_acceleration(int c) const { return forward.constrained[c] || senses; }
  // The second system is solved for component c. Without it, w is the constrained acceleration.
  bool solves_step(int c) const { return !solves_acceleration(c) || two_systems; }

  // Solves for columns first .. last-1 of component c: step_rows becomes dw, and the residual
  // becomes d(acc) where the first system is solved.
  void solve(const ModelView& m, const DataView& d, int c, int first, int last, Arena& arena) const;

  // Solves the transposed systems for component c, where `z` is a cotangent of w and `y` one of the
  // acceleration: z becomes (M + h Dhat)^-T z where the second system is solved, and y becomes
  // K^-T (y + M z), or K^-T z without the second system, where the first one is solved.    (ADJ-3)
  void solve_transposed(const ModelView& m, const DataView& d, int c, const DofRows& z,
                        const DofRows& y, Arena& arena) const;
};

// Differentiates a step with any integrator except RK4, which has several stages. `forces` asks for
// the columns of qfrc_applied, `senses` for d(acc) of all components.
StepDifferential differentiate_step(const ModelView& m, const DataView& d, bool forces, bool senses,
                                    Arena& arena);

// The differential of the acceleration alone, at the optimum, for the stages of RK4 and for
// sensors. Its residual is not filled.
StepDifferential at_acceleration(const ModelView& m, const ForwardDynamics& forward, Arena& arena);

// Columns first .. last-1 of component c: to += M from.
void add_inertia_product(const ModelView& m, const DataView& d, const Topology& tree,
                         const DofRows& from, const DofRows& to, int c, int first, int last);

}  // namespace mujacobian

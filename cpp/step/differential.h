// One step differentiated: the right-hand sides and factors from which A and B, or products with
// them, are made.
//   K d(acc) = -dg,   (M + h Dhat) dw = M d(acc) + late,   v+ = v + h w                   (INT-10)
#pragma once

#include "step/integrator.h"

namespace mujacobian {

struct StepDifferential {
  ForwardDynamics forward;  // with -dg as its residual
  Integration step;
  DofRows late;       // what enters after d(acc); all there is in components that are not held
  const double* at;   // the acceleration where g is differentiated: the optimum in held components
  const double* lag;  // w - acc in held components, else 0
  bool twice;         // `late` is apart from the residual, and solved after it
  bool senses;        // d(acc) is wanted everywhere

  // Component c is differentiated at the optimum and solved for d(acc) first; others at w, and
  // solved once.
  bool held(int c) const { return forward.constrained[c] || senses; }
};

// `forces` asks for the columns of qfrc_applied. Not for RK4, which has several stages.
StepDifferential differentiate_step(const ModelView& m, const DataView& d, bool forces, bool senses,
                                    Arena& arena);

// The differential of the acceleration alone, at the optimum: what a stage of RK4 and the sensors
// see. Its residual is not filled.
StepDifferential at_acceleration(const ModelView& m, const ForwardDynamics& forward, Arena& arena);

// Columns first .. last-1 of component c: late += M d(acc), the residual being d(acc).
void add_driven(const ModelView& m, const DataView& d, const StepDifferential& s, int c, int first,
                int last);

// Columns first .. last-1 of component c: `late` becomes dw.
void solve_step(const ModelView& m, const StepDifferential& s, int c, int first, int last,
                Arena& arena);

}  // namespace mujacobian

// The linear system of one step: the acceleration w that MuJoCo integrates solves
//   (M + h Dhat) w = force,   v+ = v + h w,
// and its derivative solves (M + h Dhat) dw = -dg(w). docs/derivations/integrators.md.
#pragma once

#include "dynamics/forward.h"
#include "smooth/inertia.h"

namespace mujacobian {

// A tree whose block of M + h Dhat is unsymmetric: dofs dof .. dof+n-1.
struct TreeBlock {
  int dof, n;
  double* matrix;  // (n, n), factored
  int* order;      // of its rows
};

struct Integration {
  bool explicit_;  // w is the constrained acceleration itself
  const double* w;
  InertiaFactor factor;
  TreeBlock* const* block;  // by tree, null where the factor serves; null for Euler
};

Integration integrate(const ModelView& m, const DataView& d, const Forward& f, Arena& arena);

// Add h d(Dhat) w, the change of the integrator's own damping, to the residual.
void add_damping_change(const ModelView& m, const DataView& d, const Forward& f,
                        const Integration& step, const Residual& residual, Arena& arena);

}  // namespace mujacobian

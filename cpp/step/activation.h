// The rows of the activations in A and B.
#pragma once

#include "actuation/actuation.h"
#include "step/transition.h"

namespace mujacobian {

// Calls state(column of A, value) and ctrl(column of B, value) for the entries of the row of
// activation i after the step.                                                           (ACN-7)
template <class State, class Ctrl>
void visit_activation(const ModelView& m, const DataView& d, const Actuation& actuation, int i,
                      Arena& arena, State state, Ctrl ctrl) {
  if (!actuation.next) return state(2 * m.nv + i, 1.0);  // constant
  const NextActivation& next = actuation.next[i];
  const int a = next.actuator;
  if (const Path& p = next.path; p.n) {
    // positions and velocities, by the length l and the rate m v of the actuator
    const double length = next.gear * next.value.d[local::kLength];
    const double speed = next.gear * next.value.d[local::kRate];
    double* rate = arena.take<double>(p.n);
    path_rate_derivative(p, d.qvel, rate);
    for (int k = 0; k < p.n; k++) {
      state(p.dofs[k], length * p.dlength[k] + speed * rate[k]);
      state(m.nv + p.dofs[k], speed * p.moment[k]);
    }
  }
  // activations and controls of the actuator
  for (int k = 0; k < m.actuator_actnum[a]; k++) {
    state(2 * m.nv + m.actuator_actadr[a] + k, next.value.d[local::kAct + k]);
  }
  for (int k = 0; k < m.actuator_ctrlnum[a]; k++) {
    ctrl(m.actuator_ctrladr[a] + k, next.value.d[local::kCtrl + k]);
  }
}

// Writes the rows of all activations, which are zero on entry.
void write_activations(const ModelView& m, const DataView& d, const Actuation& actuation,
                       const Outputs& out, Arena& arena);

}  // namespace mujacobian

#include "step/activation.h"

namespace mujacobian {
namespace {

// d(next)/d(q, v) through the length l and the rate m v of the actuator
void write_motion(const ModelView& m, const DataView& d, const NextActivation& next, double* row,
                  Arena& arena) {
  const Path& p = next.path;
  const double length = next.gear * next.value.d[local::kLength];
  const double speed = next.gear * next.value.d[local::kRate];
  double* rate = arena.take<double>(p.n);
  path_rate_derivative(p, d.qvel, rate);
  for (int k = 0; k < p.n; k++) {
    row[p.dofs[k]] = length * p.dlength[k] + speed * rate[k];
    row[m.nv + p.dofs[k]] = speed * p.moment[k];
  }
}

}  // namespace

void write_activations(const ModelView& m, const DataView& d, const Actuation& actuation,
                       const Outputs& out, Arena& arena) {
  const std::size_t nx = 2 * m.nv + m.na;
  for (int i = 0; i < m.na; i++) {
    double* state = out.A ? out.A + (2 * m.nv + i) * nx : nullptr;
    double* ctrl = out.B ? out.B + (2 * m.nv + i) * m.nu : nullptr;
    if (!actuation.next) {  // held
      if (state) state[2 * m.nv + i] = 1;
      continue;
    }
    const NextActivation& next = actuation.next[i];
    const int a = next.actuator;
    if (state) {
      if (next.path.n) write_motion(m, d, next, state, arena);
      for (int k = 0; k < m.actuator_actnum[a]; k++) {
        state[2 * m.nv + m.actuator_actadr[a] + k] = next.value.d[local::kAct + k];
      }
    }
    for (int k = 0; ctrl && k < m.actuator_ctrlnum[a]; k++) {
      ctrl[m.actuator_ctrladr[a] + k] = next.value.d[local::kCtrl + k];
    }
  }
}

}  // namespace mujacobian

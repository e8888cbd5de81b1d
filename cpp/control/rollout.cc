#include "control/rollout.h"

#include <algorithm>

#include "layout/interrupt.h"

namespace mujacobian {

int follow(const void* model, void* data, const Policy& policy, const Bounds& bounds, int n,
           double* times, double* states, double* controls, double* sensors) {
  const ModelView m = view_model(model);
  const std::ptrdiff_t size = m.nq + m.nv + m.na, nu = m.nu, ns = m.nsensordata;
  Arena arena;
  for (int t = 0; t < n; t++) {
    poll_interrupt();
    DataView d = view_data(data);
    double* state = states + t * size;
    read_state(m, d, state);
    times[t] = d.time;
    double* ctrl = const_cast<double*>(d.ctrl);
    evaluate_policy(m, policy, bounds, d.time, state, 1, ctrl, arena);
    std::copy(ctrl, ctrl + nu, controls + t * nu);
    if (!step(model, data, d)) return t;
    std::copy(d.sensordata, d.sensordata + ns, sensors + t * ns);
  }
  return n;
}

}  // namespace mujacobian

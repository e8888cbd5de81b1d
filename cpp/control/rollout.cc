#include "control/rollout.h"

#include <algorithm>

#include "layout/interrupt.h"
#include "layout/sleep.h"

namespace mujacobian {

bool simulate_knot(const Task& task, void* data, int t, const Knots& out, double& cost,
                   Arena& arena) {
  const ModelView m = view_model(task.model);
  const std::ptrdiff_t place = t, nu = m.nu, ns = m.nsensordata, nterm = task.cost->terms.size(),
                       size = engine().mj_stateSize(task.model, engine().integration_spec);
  DataView d = view_data(data);
  engine().mj_getState(task.model, data, out.rows + place * size, engine().integration_spec);
  double* ctrl = out.controls + place * nu;
  std::copy(d.ctrl, d.ctrl + nu, ctrl);
  if (t < task.T - 1) {
    if (!step(task.model, data, d)) return false;
    require_awake(m, d);
  } else {
    forward(task.model, data);
    d = view_data(data);
  }
  double* sensors = out.sensors + place * ns;
  std::copy(d.sensordata, d.sensordata + ns, sensors);
  std::copy(d.qacc, d.qacc + m.nv, out.qacc + place * m.nv);
  cost = evaluate_cost(*task.cost, {sensors, ctrl, task.offsets + place * task.cost->count()},
                       task.weights + place * nterm, out.norms + place * nterm, arena);
  return true;
}

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

#include "control/rollout.h"

#include <algorithm>

#include "layout/enums.h"

namespace mujacobian {
namespace {

int count_warnings(const void* data) {
  const kind::WARNINGS warning = view_data(data).warning;
  int sum = 0;
  for (int k : {warning::kBadQpos, warning::kBadQvel, warning::kBadQacc, warning::kBadCtrl}) {
    sum += warning.v[k].number;
  }
  return sum;
}

}  // namespace

int follow(const void* model, void* data, const Policy& policy, const Bounds& bounds, int n,
           double* times, double* states, double* controls, double* sensors) {
  const ModelView m = view_model(model);
  const std::ptrdiff_t size = m.nq + m.nv + m.na, nu = m.nu, ns = m.nsensordata;
  const int warnings = count_warnings(data);
  Arena arena;
  for (int t = 0; t < n; t++) {
    DataView d = view_data(data);
    double* state = states + t * size;
    std::copy(d.qpos, d.qpos + m.nq, state);
    std::copy(d.qvel, d.qvel + m.nv, state + m.nq);
    std::copy(d.act, d.act + m.na, state + m.nq + m.nv);
    times[t] = d.time;
    double* ctrl = const_cast<double*>(d.ctrl);
    evaluate_policy(m, policy, bounds, d.time, state, 1, ctrl, arena);
    std::copy(ctrl, ctrl + nu, controls + t * nu);
    step(model, data);
    if (count_warnings(data) > warnings) return t;
    d = view_data(data);
    std::copy(d.sensordata, d.sensordata + ns, sensors + t * ns);
  }
  return n;
}

}  // namespace mujacobian

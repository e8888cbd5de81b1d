#include "second_order/activation.h"

namespace mujacobian {
namespace {

// The entries of z = (state, controls) that the variables of an actuator depend on.
struct Entries {
  int n;
  int* index;
  int* variable;  // of CurvedNumber
  double* slope;  // derivative of this variable with respect to the entry

  void put(int at, int of, double by) { index[n] = at, variable[n] = of, slope[n++] = by; }
};

Entries actuator_entries(const ModelView& m, const DataView& d, const ActivationCurvature& c,
                         Arena& arena) {
  const int a = c.actuator, acts = m.actuator_actnum[a], ctrls = m.actuator_ctrlnum[a];
  const int most = 3 * c.path.n + acts + ctrls;
  Entries e{0, arena.take<int>(most), arena.take<int>(most), arena.take<double>(most)};
  double* rate = arena.take<double>(c.path.n);
  path_rate_derivative(c.path, d.qvel, rate);
  for (int k = 0; k < c.path.n; k++) {
    e.put(c.path.dofs[k], local::kLength, c.gear * c.path.dlength[k]);
    if (rate[k] != 0) e.put(c.path.dofs[k], local::kRate, c.gear * rate[k]);
    e.put(m.nv + c.path.dofs[k], local::kRate, c.gear * c.path.moment[k]);
  }
  for (int k = 0; k < acts; k++) {
    e.put(2 * m.nv + m.actuator_actadr[a] + k, local::kAct + k, 1);
  }
  for (int k = 0; k < ctrls; k++) {
    e.put(state_size(m) + m.actuator_ctrladr[a] + k, local::kCtrl + k, 1);
  }
  return e;
}

}  // namespace

void visit_activation_hessians(const ModelView& m, const DataView& d, const Actuation& actuation,
                               ActivationValue of, const double* weights, Arena& arena,
                               const std::function<void(int, int, double)>& visit) {
  ActivationCurvature* all = arena.take<ActivationCurvature>(m.na);
  const int count = activation_curvatures(m, d, actuation, of, all, arena);
  for (int i = 0; i < count; i++) {
    const ActivationCurvature& c = all[i];
    const double weight = weights[c.act];
    if (weight == 0) continue;
    const Entries e = actuator_entries(m, d, c, arena);
    for (int j = 0; j < e.n; j++)
      for (int k = 0; k < e.n; k++) {
        const double second = c.value.second(e.variable[j], e.variable[k]);
        visit(e.index[j], e.index[k], weight * (e.slope[j] * e.slope[k]) * second);
      }
    // the length and the rate are functions of the positions                            (HES-50)
    const int n = c.path.n;
    const double by_length = weight * c.gear * c.value.d[local::kLength];
    const double by_rate = weight * c.gear * c.value.d[local::kRate];
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++) {
        double second = 0;
        if (c.bend.length) second += by_length * c.bend.length[j * n + k];
        if (c.bend.moment) second += by_rate * c.bend.moment[j * n + k];
        visit(c.path.dofs[j], c.path.dofs[k], second);
        if (!c.path.hessian) continue;
        const double mixed = by_rate * c.path.hessian[j * n + k];
        visit(m.nv + c.path.dofs[j], c.path.dofs[k], mixed);
        visit(c.path.dofs[k], m.nv + c.path.dofs[j], mixed);
      }
  }
}

}  // namespace mujacobian

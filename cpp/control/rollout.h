// Simulations of the knots of a plan, with their costs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "control/cost.h"
#include "control/policy.h"
#include "layout/engine.h"
#include "layout/interrupt.h"

namespace mujacobian {

// What all rollouts of a plan share.
struct Task {
  const void* model;
  const CostRows* cost;
  int T;                  // knots
  const double* start;    // mjSTATE_INTEGRATION
  const double* offsets;  // (T, rows of the cost)
  const double* weights;  // (terms), the mean over knots included
  Bounds bounds;
};

// What is kept of every knot.
struct Knots {
  double* rows;      // (T, nstate) mjSTATE_INTEGRATION
  double* controls;  // (T, nu)
  double* sensors;   // (T, ns)
  double* qacc;      // (T, nv)
  double* norms;     // (T, terms)
};

struct Rolled {
  int taken;    // knots; fewer than T if it was abandoned or MuJoCo found the state bad
  bool is_bad;  // MuJoCo found the state bad
  double cost;  // infinite unless all knots were taken
};

// Simulate from `task.start`: control(t, d, ctrl) sets the control of knot t, done(t) is called
// when mj_step has left knot t, and the last knot, of which mj_forward is the end and whose control
// is that of the one before. Abandoned when the cost exceeds `most`, is not finite, or give_up()
// says so.
template <class Control, class Done, class GiveUp>
Rolled roll(const Task& task, void* data, const Knots& out, double most, Arena& arena,
            Control control, Done done, GiveUp give_up) {
  const ModelView m = view_model(task.model);
  const int size = engine().mj_stateSize(task.model, engine().integration_spec);
  const std::ptrdiff_t nu = m.nu, ns = m.nsensordata, nterm = task.cost->terms.size();
  reset(task.model, data);
  engine().mj_setState(task.model, data, task.start, engine().integration_spec);
  double sum = 0;
  Rolled result{0, false, std::numeric_limits<double>::infinity()};
  for (std::ptrdiff_t t = 0; t < task.T; t++) {
    poll_interrupt();
    DataView d = view_data(data);
    if (t < task.T - 1) control(static_cast<int>(t), d, const_cast<double*>(d.ctrl));
    engine().mj_getState(task.model, data, out.rows + t * size, engine().integration_spec);
    std::copy(d.ctrl, d.ctrl + nu, out.controls + t * nu);
    if (t < task.T - 1) {
      if (!step(task.model, data, d)) {
        result.is_bad = true;
        return result;
      }
    } else {
      forward(task.model, data);
      d = view_data(data);
    }
    std::copy(d.sensordata, d.sensordata + ns, out.sensors + t * ns);
    std::copy(d.qacc, d.qacc + m.nv, out.qacc + t * m.nv);
    sum += evaluate_cost(
        *task.cost,
        {out.sensors + t * ns, out.controls + t * nu, task.offsets + t * task.cost->count()},
        task.weights, out.norms + t * nterm, arena);
    if (!(sum <= most) || !std::isfinite(sum) || give_up()) return result;
    result.taken++;
    done(static_cast<int>(t));
  }
  result.cost = sum;
  return result;
}

// n steps of the caller's data, which has no warnings, under a policy; rows of n. Returns the
// number of steps before MuJoCo found the state bad.
int follow(const void* model, void* data, const Policy& policy, const Bounds& bounds, int n,
           double* times, double* states, double* controls, double* sensors);

}  // namespace mujacobian

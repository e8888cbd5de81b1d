// Simulation of the knots of a plan with their costs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "control/cost.h"
#include "control/policy.h"
#include "layout/engine.h"
#include "layout/interrupt.h"
#include "layout/sleep.h"

namespace mujacobian {

// Data that all rollouts of a plan share.
struct Task {
  const void* model;
  const CostRows* cost;
  int T;                  // number of knots
  const double* start;    // mjSTATE_INTEGRATION
  const double* offsets;  // (T, rows of the cost)
  const double* weights;  // (terms), divided by the number of knots
  Bounds bounds;
};

// Recorded data of all knots.
struct Knots {
  double* rows;      // (T, nstate) mjSTATE_INTEGRATION
  double* controls;  // (T, nu)
  double* sensors;   // (T, ns)
  double* qacc;      // (T, nv)
  double* norms;     // (T, terms)
};

struct Rolled {
  int taken;    // number of knots, less than T if the rollout was aborted or diverged
  bool is_bad;  // MuJoCo detected NaN or huge values
  double cost;  // infinite unless all knots were simulated
};

// Simulate from `task.start` with three callbacks: control(t, d, ctrl) sets the control of knot t,
// done(t) runs after mj_step of knot t, and give_up() returns whether to abort. The last knot has
// the control of the previous one, and mj_forward instead of mj_step. The rollout is also aborted
// if its cost exceeds `most` or is not finite.
template <class Control, class Done, class GiveUp>
Rolled roll(const Task& task, void* data, const Knots& out, double most, Arena& arena,
            Control control, Done done, GiveUp give_up) {
  const ModelView m = view_model(task.model);
  const int size = engine().mj_stateSize(task.model, engine().integration_spec);
  const std::ptrdiff_t nu = m.nu, ns = m.nsensordata, nterm = task.cost->terms.size();
  // initial state
  reset(task.model, data);
  engine().mj_setState(task.model, data, task.start, engine().integration_spec);
  double sum = 0;
  Rolled result{0, false, std::numeric_limits<double>::infinity()};
  for (std::ptrdiff_t t = 0; t < task.T; t++) {
    // set the control, and record the state before the step
    poll_interrupt();
    DataView d = view_data(data);
    if (t < task.T - 1) control(static_cast<int>(t), d, const_cast<double*>(d.ctrl));
    engine().mj_getState(task.model, data, out.rows + t * size, engine().integration_spec);
    std::copy(d.ctrl, d.ctrl + nu, out.controls + t * nu);
    // take the step; the last knot evaluates only accelerations and sensors
    if (t < task.T - 1) {
      if (!step(task.model, data, d)) {
        result.is_bad = true;
        return result;
      }
      require_awake(m, d);
    } else {
      forward(task.model, data);
      d = view_data(data);
    }
    // record sensors and accelerations, and add the cost of the knot
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

// Advance the caller's data, which has no warnings, by n steps under a policy, and record them in
// arrays of n rows. Returns the number of steps before MuJoCo detected NaN or huge values.
int follow(const void* model, void* data, const Policy& policy, const Bounds& bounds, int n,
           double* times, double* states, double* controls, double* sensors);

}  // namespace mujacobian

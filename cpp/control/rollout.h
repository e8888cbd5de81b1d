// Simulation of the knots of a plan with their costs.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "control/cost.h"
#include "control/policy.h"
#include "layout/engine.h"
#include "layout/interrupt.h"

namespace mujacobian {

// Data that all rollouts of a plan share.
struct Task {
  const void* model;
  const CostRows* cost;
  int T;                  // number of knots
  const double* start;    // mjSTATE_INTEGRATION
  const double* offsets;  // (T, rows of the cost)
  const double* weights;  // (T, terms), divided by the number of knots
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

// Simulate knot t from the state and control of `data`, and record it. The last knot has mj_forward
// instead of mj_step. Returns false if MuJoCo detected NaN or huge values, otherwise sets the cost.
bool simulate_knot(const Task& task, void* data, int t, const Knots& out, double& cost,
                   Arena& arena);

// Simulate from `task.start` with three callbacks: control(t, d, ctrl) sets the control of knot t,
// done(t) runs after mj_step of knot t, and give_up() returns whether to abort. The last knot has
// the control of the previous one, and mj_forward instead of mj_step. The rollout is also aborted
// if its cost exceeds `most` or is not finite.
template <class Control, class Done, class GiveUp>
Rolled roll(const Task& task, void* data, const Knots& out, double most, Arena& arena,
            Control control, Done done, GiveUp give_up) {
  // initial state
  reset(task.model, data);
  engine().mj_setState(task.model, data, task.start, engine().integration_spec);
  double sum = 0;
  Rolled result{0, false, std::numeric_limits<double>::infinity()};
  for (int t = 0; t < task.T; t++) {
    poll_interrupt();
    const DataView d = view_data(data);
    if (t < task.T - 1) control(t, d, const_cast<double*>(d.ctrl));
    double cost;
    if (!simulate_knot(task, data, t, out, cost, arena)) {
      result.is_bad = true;
      return result;
    }
    sum += cost;
    if (!(sum <= most) || !std::isfinite(sum) || give_up()) return result;
    result.taken++;
    done(t);
  }
  result.cost = sum;
  return result;
}

// Advance the caller's data, which has no warnings, by n steps under a policy, and record them in
// arrays of n rows. Returns the number of steps before MuJoCo detected NaN or huge values.
int follow(const void* model, void* data, const Policy& policy, const Bounds& bounds, int n,
           double* times, double* states, double* controls, double* sensors);

}  // namespace mujacobian

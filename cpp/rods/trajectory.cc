#include "rods/trajectory.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "layout/interrupt.h"
#include "rods/algebra.h"

namespace mujacobian::rods {
namespace {

// Row k of an array with rows of this size, or null
template <class T>
T* row(T* rows, int k, size_t size) {
  return rows ? rows + k * size : nullptr;
}

// A state with arrays of the right size
State empty(const Model& m) {
  return {std::vector<Vec3>(m.mass.size()), std::vector<Mat3>(m.moment.size())};
}

// Sum of the squares of all entries
double square(const Tangent& a) {
  double sum = 0;
  for (Vec3 v : a) sum += dot(v, v);
  return sum;
}

// Linear solver with the Hessian of a step in the rows that are not fixed
class Solver {
 public:
  explicit Solver(const Model& m)
      : fixed_(m.fixed()), hessian_(m.slots(), couplings(m)), factor_(hessian_), rest_(m.slots()) {}

  // Assemble and factor the Hessian of a step
  void assemble(const Problem& p, const State& q, int step) {
    Sum sum;
    sum.hessian = &hessian_;
    evaluate(p, q, sum);
    factor_.compute(hessian_, fixed_, 0, true);
    if (factor_.singular()) {
      throw std::runtime_error("the Hessian of step " + std::to_string(step) + " is singular");
    }
  }

  // z = H^-1 b, with one step of iterative refinement
  void solve(const Tangent& b, Tangent& z) {
    z = b;
    factor_.solve(z);
    hessian_.multiply(z, rest_);
    for (size_t i = 0; i < z.size(); i++) rest_[i] = b[i] - rest_[i];
    factor_.solve(rest_);
    for (size_t i = 0; i < z.size(); i++) z[i] += rest_[i];
  }

  // Add the cotangents of fixed slots, which keep their previous value. The equations of the other
  // slots depend on them.
  void add_fixed(const Tangent& total, const Tangent& z, Tangent& previous) {
    hessian_.multiply(z, rest_);
    for (size_t i = 0; i < z.size(); i++) {
      if (fixed_[i]) previous[i] += total[i] + rest_[i];
    }
  }

 private:
  const std::vector<char> fixed_;
  Skyline hessian_;
  Factor factor_;
  Tangent rest_;
};

}  // namespace

Inputs InputRows::at(const Model& m, int step) const {
  return {row(forces, step, 3 * m.mass.size()), row(torques, step, 3 * m.moment.size()),
          row(tensions, step, m.cables.size()),
          row(rest, rest_per_step ? step : 0, 3 * m.bends.size()),
          row(targets, step, 3 * static_cast<size_t>(m.targets))};
}

void StateRows::get(const Model& m, int k, State& q) const {
  const double* x = row(positions, k, 3 * m.mass.size());
  const double* R = row(rotations, k, 9 * m.moment.size());
  for (size_t i = 0; i < q.x.size(); i++) q.x[i] = load3(x + 3 * i);
  for (size_t i = 0; i < q.R.size(); i++) q.R[i] = load9(R + 9 * i);
}

int simulate(const Model& m, const State& first_step, int T, const InputRows& inputs,
             const Options& options, bool persist, double* positions, double* rotations,
             Report* reports) {
  Newton newton(m);
  State previous = empty(m), step = first_step, q = empty(m);
  StateRows{positions, rotations}.get(m, 0, previous);
  for (int k = 0; k < T; k++) {
    // minimize the potential of the step
    Problem problem(m, previous, step, inputs.at(m, k));
    reports[k] = newton.minimize(problem, options, q);
    if (reports[k].status != Status::kConverged && !persist) return k;
    // record the state
    double* x = row(positions, k + 1, 3 * m.mass.size());
    double* R = row(rotations, k + 1, 9 * m.moment.size());
    for (Vec3 each : q.x) store3(x, each), x += 3;
    for (const Mat3& each : q.R) R = std::copy_n(each.m, 9, R);
    // the change of this step determines the inertia of the next one
    subtract(q, previous, step);
    std::swap(q, previous);
  }
  return T;
}

void pull_back_steps(const Model& m, const State& first_step, int T, const InputRows& inputs,
                     const StateRows& states, const std::vector<Tangent>& given,
                     const Tangent& given_step, const InputBars& input_bars, double* norms,
                     Bars& bars) {
  Solver solver(m);
  State q = empty(m), previous = empty(m), before = empty(m), step = empty(m);
  Tangent total(m.slots()), z(m.slots());
  // cotangents of the last state and of the last change
  Tangent state_bar = given[T], step_bar = given_step;
  norms[T] = std::sqrt(square(state_bar) + square(step_bar));
  for (int k = T; k > 0; k--) {
    // states around step k, and the change before it
    poll_interrupt();
    states.get(m, k, q);
    states.get(m, k - 1, previous);
    if (k > 1) {
      states.get(m, k - 2, before);
      subtract(previous, before, step);
    } else {
      step = first_step;
    }
    // implicit differentiation: z = -H^-1 (cotangent of the state at the end of the step)
    Problem problem(m, previous, step, inputs.at(m, k - 1));
    solver.assemble(problem, q, k - 1);
    for (size_t i = 0; i < z.size(); i++) total[i] = -(state_bar[i] + step_bar[i]);
    solver.solve(total, z);
    for (Vec3& t : total) t = -t;

    // outputs of this step
    bars.previous = given[k - 1];
    std::fill(bars.step.begin(), bars.step.end(), Vec3{});
    bars.forces = row(input_bars.forces, k - 1, 3 * m.mass.size());
    bars.torques = row(input_bars.torques, k - 1, 3 * m.moment.size());
    bars.tensions = row(input_bars.tensions, k - 1, m.cables.size());
    bars.rest = row(input_bars.rest, k - 1, 3 * m.bends.size());
    bars.targets = row(input_bars.targets, k - 1, 3 * static_cast<size_t>(m.targets));
    // pull z back through the gradient of the potential
    pull_back(problem, q, z, bars);
    solver.add_fixed(total, z, bars.previous);
    // the change x - x_prev, R R_prev^T also depends on the previous state              (ROD-27)
    for (int slot : m.point_slot) bars.previous[slot] += -step_bar[slot];
    for (size_t i = 0; i < q.R.size(); i++) {
      const int slot = m.frame_slot[i];
      Mat3 taken = times_transposed(q.R[i], previous.R[i]);
      bars.previous[slot] += -transpose_mul(taken, step_bar[slot]);
    }
    // continue with the previous state
    state_bar = bars.previous;
    step_bar = bars.step;
    norms[k - 1] = std::sqrt(square(state_bar) + square(step_bar));
  }
  bars.previous = state_bar;
  bars.step = step_bar;
}

}  // namespace mujacobian::rods

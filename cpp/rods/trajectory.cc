#include "rods/trajectory.h"

#include <algorithm>
#include <array>
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

// Linear solver with the Hessian of a step in the rows that are not fixed
class Solver {
 public:
  explicit Solver(const Model& m) : fixed_(m.fixed()), hessian_(m), rest_(m.slots()) {}

  // Assemble and factor the Hessian of a step
  void assemble(const Problem& p, const State& q, int step) {
    Sum sum;
    hessian_.fit(p, q);
    sum.hessian = &hessian_.matrix();
    evaluate(p, q, sum);
    hessian_.factor().compute(hessian_.matrix(), fixed_, 0, true);
    if (hessian_.factor().singular()) {
      throw std::runtime_error("the Hessian of step " + std::to_string(step) + " is singular");
    }
  }

  // z = H^-1 b, with one step of iterative refinement
  void solve(const Tangent& b, Tangent& z) {
    z = b;
    hessian_.factor().solve(z);
    hessian_.matrix().multiply(z, rest_);
    for (size_t i = 0; i < z.size(); i++) rest_[i] = b[i] - rest_[i];
    hessian_.factor().solve(rest_);
    for (size_t i = 0; i < z.size(); i++) z[i] += rest_[i];
  }

  // Add the cotangents of fixed slots, which keep their previous value. The equations of the other
  // slots depend on them.
  void add_fixed(const Tangent& total, const Tangent& z, Tangent& previous) {
    hessian_.matrix().multiply(z, rest_);
    for (size_t i = 0; i < z.size(); i++) {
      if (fixed_[i]) previous[i] += total[i] + rest_[i];
    }
  }

 private:
  const std::vector<char> fixed_;
  Hessian hessian_;
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

int simulate(const Model& m, const State& before, int T, const InputRows& inputs,
             const Options& options, bool persist, double* positions, double* rotations,
             Report* reports) {
  Newton newton(m);
  // the last states, newest first, and the next one
  std::array<State, kPast> past;
  State q = empty(m);
  StateRows{positions, rotations}.get(m, 0, q);
  past.fill(before);
  std::swap(past[0], q);
  for (int k = 0; k < T; k++) {
    // minimize the potential of the step
    Problem problem(m, Scheme::at(m, k), {&past[0], &past[1], &past[2], &past[3]}, inputs.at(m, k));
    reports[k] = newton.minimize(problem, options, q);
    if (reports[k].status != Status::kConverged && !persist) return k;
    // record the state
    double* x = row(positions, k + 1, 3 * m.mass.size());
    double* R = row(rotations, k + 1, 9 * m.moment.size());
    for (Vec3 each : q.x) store3(x, each), x += 3;
    for (const Mat3& each : q.R) R = std::copy_n(each.m, 9, R);
    // it becomes the newest of the last states
    std::swap(q, past[kPast - 1]);
    std::rotate(past.begin(), past.end() - 1, past.end());
  }
  return T;
}

namespace {

// Cotangents of all states that later steps have added, and of the state before the first one
struct Pending {
  std::vector<Tangent> rows;  // of states 0 ... T
  Tangent before;

  Pending(const Model& m, int T) : rows(T + 1, Tangent(m.slots())), before(m.slots()) {}
  Tangent& at(int row) { return row < 0 ? before : rows[row]; }
};

// Returns the norm of the cotangents of state k and of the changes that led to it, given those of
// the state (`newest`) and of the earlier states. Cotangents of rotations are added in body axes.
double norm_of_changes(const Model& m, const Past& states, const Tangent& newest, Pending& pending,
                       int k) {
  double square = 0;
  auto add = [&](int slot, auto in_axes) {
    Vec3 sum{};
    for (int j = kPast - 1; j >= 0; j--) {
      if (k - j < -1) continue;
      sum += in_axes(j, j == 0 ? newest[slot] : pending.at(k - j)[slot]);
      square += dot(sum, sum);
    }
  };
  for (int slot : m.point_slot) add(slot, [](int, Vec3 bar) { return bar; });
  for (size_t i = 0; i < m.frame_slot.size(); i++) {
    add(m.frame_slot[i], [&](int j, Vec3 bar) { return transpose_mul(states[j]->R[i], bar); });
  }
  return std::sqrt(square);
}

}  // namespace

void pull_back_steps(const Model& m, const State& before, int T, const InputRows& inputs,
                     const StateRows& states, const std::vector<Tangent>& given,
                     const Tangent& given_step, const InputBars& input_bars, double* norms,
                     Bars& bars, Tangent& first_bar, Tangent& before_bar) {
  Solver solver(m);
  Tangent total(m.slots()), z(m.slots());
  Pending pending(m, T);
  // states k, k - 1, ..., and the state before the first one
  std::array<State, kPast + 1> window;
  window.fill(empty(m));
  auto load = [&](int k, State& q) { k < 0 ? void(q = before) : states.get(m, k, q); };
  for (int j = 0; j <= kPast; j++) load(T - j, window[j]);
  // the last change also depends on the last two states                                (ROD-27)
  total = given[T];
  for (int slot : m.point_slot) {
    total[slot] += given_step[slot];
    pending.at(T - 1)[slot] += -given_step[slot];
  }
  for (size_t i = 0; i < m.frame_slot.size(); i++) {
    const int slot = m.frame_slot[i];
    const Mat3 taken = times_transposed(window[0].R[i], window[1].R[i]);
    total[slot] += given_step[slot];
    pending.at(T - 1)[slot] += -transpose_mul(taken, given_step[slot]);
  }
  auto newest = [&](int j) {
    return Past{&window[j], &window[j + 1], &window[j + 2], &window[j + 3]};
  };
  norms[T] = norm_of_changes(m, newest(0), total, pending, T);
  for (int k = T; k > 0; k--) {
    poll_interrupt();
    // implicit differentiation: z = -H^-1 (cotangent of the state at the end of the step)
    Problem problem(m, Scheme::at(m, k - 1), newest(1), inputs.at(m, k - 1));
    solver.assemble(problem, window[0], k - 1);
    for (Vec3& t : total) t = -t;
    solver.solve(total, z);
    for (Vec3& t : total) t = -t;

    // outputs of this step
    for (int j = 0; j < kPast; j++) bars.past[j] = &pending.at(k - 1 - j);
    bars.before = k < kPast ? k : -1;
    bars.forces = row(input_bars.forces, k - 1, 3 * m.mass.size());
    bars.torques = row(input_bars.torques, k - 1, 3 * m.moment.size());
    bars.tensions = row(input_bars.tensions, k - 1, m.cables.size());
    bars.rest = row(input_bars.rest, k - 1, 3 * m.bends.size());
    bars.targets = row(input_bars.targets, k - 1, 3 * static_cast<size_t>(m.targets));
    // pull z back through the gradient of the potential
    pull_back(problem, window[0], z, bars);
    solver.add_fixed(total, z, *bars.past[0]);
    // continue with the previous state
    for (size_t i = 0; i < total.size(); i++) total[i] = given[k - 1][i] + pending.at(k - 1)[i];
    std::rotate(window.begin(), window.begin() + 1, window.end());
    load(k - 1 - kPast, window[kPast]);
    norms[k - 1] = norm_of_changes(m, newest(0), total, pending, k - 1);
  }
  first_bar = total;
  before_bar = pending.before;
}

}  // namespace mujacobian::rods

#include "bindings/rods.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/errors.h"
#include "bindings/rod_arrays.h"
#include "bindings/rod_model.h"
#include "layout/platform.h"
#include "rods/trajectory.h"

namespace mujacobian {
namespace {

using namespace rods;  // NOLINT: this file is about nothing else

State read_state(const Model& m, const Numbers& x, const Numbers& R) {
  data(x, 3 * m.mass.size()), data(R, 9 * m.moment.size());
  return {vectors(x), matrices(R)};
}

// In Python, a tangent consists of the vectors of all points, followed by those of all frames.
Tangent read_tangent(const Model& m, const double* points, const double* frames) {
  Tangent all(m.slots());
  for (size_t i = 0; i < m.mass.size(); i++) all[m.point_slot[i]] = load3(points + 3 * i);
  for (size_t i = 0; i < m.moment.size(); i++) all[m.frame_slot[i]] = load3(frames + 3 * i);
  return all;
}

void write_tangent(const Model& m, const Tangent& all, const Doubles& points,
                   const Doubles& frames) {
  double *x = data(points, 3 * m.mass.size()), *r = data(frames, 3 * m.moment.size());
  for (size_t i = 0; i < m.mass.size(); i++) store3(x + 3 * i, all[m.point_slot[i]]);
  for (size_t i = 0; i < m.moment.size(); i++) store3(r + 3 * i, all[m.frame_slot[i]]);
}

// (forces, torques, tensions, rest, targets)
using InputArrays = std::vector<Maybe<Numbers>>;
using BarArrays = std::vector<Maybe<Doubles>>;

InputRows read_inputs(const Model& m, int T, const InputArrays& a) {
  const size_t bends = 3 * m.bends.size();
  const bool per_step = a[3]->size() != bends;
  const size_t n = static_cast<size_t>(T);
  return {data(a[0], n * 3 * m.mass.size()), data(a[1], n * 3 * m.moment.size()),
          data(a[2], n * m.cables.size()),   data(a[3], per_step ? n * bends : bends),
          data(a[4], n * 3 * m.targets),     per_step};
}

InputBars read_bars(const Model& m, int T, const BarArrays& a) {
  const size_t n = static_cast<size_t>(T);
  return {data(a[0], n * 3 * m.mass.size()), data(a[1], n * 3 * m.moment.size()),
          data(a[2], n * m.cables.size()), data(a[3], n * 3 * m.bends.size()),
          data(a[4], n * 3 * m.targets)};
}

void write(const std::vector<double>& from, const Doubles& to) {
  std::copy(from.begin(), from.end(), data(to, from.size()));
}
void write(const std::vector<Vec3>& from, const Doubles& to) {
  double* out = data(to, 3 * from.size());
  for (Vec3 v : from) store3(out, v), out += 3;
}
void write(const std::vector<Mat3>& from, const Doubles& to) {
  double* out = data(to, 9 * from.size());
  for (const Mat3& a : from) out = std::copy_n(a.m, 9, out);
}

// In the order of `Parameters` in Python
void write_parameters(const Bars& bars, const std::vector<Doubles>& to) {
  write(bars.mass, to[0]), write(bars.moment, to[1]), write(bars.length, to[2]);
  write(bars.stretch, to[3]), write(bars.shear, to[4]), write(bars.bend, to[5]);
  write(bars.stretch_damping, to[6]), write(bars.bend_damping, to[7]);
  write(bars.drag, to[8]), write(bars.spin_drag, to[9]);
  write(bars.attachment, to[10]), write(bars.contact, to[11]), write(bars.friction, to[12]);
}

int simulate_into(const Model& m, const Numbers& before_x, const Numbers& before_R, int T,
                  const InputArrays& inputs, double tolerance, int iterations, bool persist,
                  const Doubles& positions, const Doubles& rotations, const Doubles& reports) {
  State before = read_state(m, before_x, before_R);
  InputRows rows = read_inputs(m, T, inputs);
  double* x = data(positions, (T + 1) * 3 * m.mass.size());
  double* R = data(rotations, (T + 1) * 9 * m.moment.size());
  double* report = data(reports, 6 * static_cast<size_t>(T));
  std::vector<Report> made(T);
  int taken = 0;
  run([&] {
    taken = simulate(m, before, T, rows, {tolerance, iterations}, persist, x, R, made.data());
  });
  for (const Report& r : made) {
    *report++ = static_cast<double>(r.status), *report++ = r.iterations;
    *report++ = r.correction, *report++ = r.residual;
    *report++ = r.slot, *report++ = r.contact;
  }
  return taken;
}

void pull_back_into(const Model& m, const Numbers& before_x, const Numbers& before_R, int T,
                    const InputArrays& inputs, const Numbers& positions, const Numbers& rotations,
                    const Numbers& d_positions, const Numbers& d_rotations, const Numbers& d_step_x,
                    const Numbers& d_step_R, const BarArrays& input_bars,
                    const std::vector<Doubles>& parameter_bars,
                    const std::vector<Doubles>& first_bars, const Doubles& norms) {
  const size_t points = 3 * m.mass.size(), frames = 3 * m.moment.size();
  State before = read_state(m, before_x, before_R);
  InputRows rows = read_inputs(m, T, inputs);
  StateRows states{data(positions, (T + 1) * points), data(rotations, (T + 1) * 3 * frames)};
  const double *dx = data(d_positions, (T + 1) * points), *dR = data(d_rotations, (T + 1) * frames);
  InputBars bars = read_bars(m, T, input_bars);
  std::vector<Tangent> given;
  for (int k = 0; k <= T; k++) given.push_back(read_tangent(m, dx + k * points, dR + k * frames));
  Tangent given_step = read_tangent(m, data(d_step_x, points), data(d_step_R, frames));
  Bars made(m);
  Tangent first_bar(m.slots()), before_bar(m.slots());
  double* sizes = data(norms, T + 1);
  run([&] {
    pull_back_steps(m, before, T, rows, states, given, given_step, bars, sizes, made, first_bar,
                    before_bar);
  });
  write_parameters(made, parameter_bars);
  write_tangent(m, first_bar, first_bars[0], first_bars[1]);
  double* points_bar = data(first_bars[2], points);
  for (int slot : m.point_slot) store3(points_bar, before_bar[slot]), points_bar += 3;
  write(made.ambient, first_bars[3]);
}

// The states before step k of a simulation, newest first. The arrays have at least two rows; the
// last one is repeated.
struct PastStates {
  std::vector<State> rows;

  PastStates(const Model& m, const Numbers& x, const Numbers& R) {
    const size_t points = 3 * m.mass.size(), frames = 9 * m.moment.size();
    const size_t count = points ? x.size() / points : R.size() / frames;
    StateRows all{data(x, count * points), data(R, count * frames)};
    rows.resize(count, {std::vector<Vec3>(m.mass.size()), std::vector<Mat3>(m.moment.size())});
    for (size_t j = 0; j < count; j++) all.get(m, static_cast<int>(j), rows[j]);
  }
  Past states() const {
    Past all;
    for (size_t j = 0; j < kPast; j++) all[j] = &rows[std::min(j, rows.size() - 1)];
    return all;
  }
};

// Returns the potential of step k at (x, R). Writes its gradient and its Hessian
// (3 slots, 3 slots), points first, then frames.
double evaluate_into(const Model& m, int k, const Numbers& past_x, const Numbers& past_R,
                     const InputArrays& inputs, const Numbers& x, const Numbers& R,
                     const Doubles& d_points, const Doubles& d_frames,
                     const Maybe<Doubles>& hessian) {
  const PastStates past(m, past_x, past_R);
  Problem problem(m, Scheme::at(m, k), past.states(), read_inputs(m, 1, inputs).at(m, 0));
  Tangent gradient(m.slots());
  const State q = read_state(m, x, R);
  Hessian fitted(m);
  fitted.fit(problem, q);
  const SparseMatrix& H = fitted.matrix();
  Sum sum;
  sum.gradient = &gradient;
  sum.hessian = hessian ? &fitted.matrix() : nullptr;
  evaluate(problem, q, sum);
  write_tangent(m, gradient, d_points, d_frames);
  if (!hessian) return sum.energy;
  const int n = m.slots();
  double* out = data(*hessian, 9 * static_cast<size_t>(n) * n);
  std::vector<int> place(n);  // index of each slot in Python
  for (size_t i = 0; i < m.mass.size(); i++) place[m.point_slot[i]] = static_cast<int>(i);
  for (size_t i = 0; i < m.moment.size(); i++) {
    place[m.frame_slot[i]] = static_cast<int>(m.mass.size() + i);
  }
  std::fill_n(out, 9 * n * n, 0.0);
  H.for_each([&](int i, int j, const Mat3& block) {
    for (int e = 0; e < 9; e++) {
      const int r = 3 * place[i] + e / 3, c = 3 * place[j] + e % 3;
      out[3 * n * r + c] = out[3 * n * c + r] = block.m[e];
    }
  });
  return sum.energy;
}

// Returns the processor seconds of one assembly of gradient and Hessian at (x, R), and of one
// factorization and solution.
std::pair<double, double> timings(const Model& m, int k, const Numbers& past_x,
                                  const Numbers& past_R, const InputArrays& inputs,
                                  const Numbers& x, const Numbers& R, int repeats) {
  const PastStates past(m, past_x, past_R);
  Problem problem(m, Scheme::at(m, k), past.states(), read_inputs(m, 1, inputs).at(m, 0));
  State q = read_state(m, x, R);
  Tangent gradient(m.slots()), solution;
  Hessian hessian(m);
  hessian.fit(problem, q);
  SparseMatrix& H = hessian.matrix();
  Factor& factor = hessian.factor();
  Sum sum;
  sum.gradient = &gradient;
  sum.hessian = &H;
  const std::vector<char> fixed = m.fixed();
  const long long begin = processor_time();  // other processes do not change it
  for (int i = 0; i < repeats; i++) evaluate(problem, q, sum);
  const long long middle = processor_time();
  for (int i = 0; i < repeats; i++) {
    factor.compute(H, fixed, 0, true);
    solution = gradient;
    factor.solve(solution);
  }
  const long long end = processor_time();
  const double tick = 1e-9 / repeats;
  return {tick * static_cast<double>(middle - begin), tick * static_cast<double>(end - middle)};
}

// Writes the stored energies of all states, with the inputs of the step before each.
void stored_energies_into(const Model& m, int rows, const InputArrays& inputs,
                          const Numbers& positions, const Numbers& rotations,
                          const Doubles& energies) {
  InputRows all = read_inputs(m, rows, inputs);
  StateRows states{data(positions, rows * 3 * m.mass.size()),
                   data(rotations, rows * 9 * m.moment.size())};
  double* out = data(energies, rows);
  State q{std::vector<Vec3>(m.mass.size()), std::vector<Mat3>(m.moment.size())};
  for (int k = 0; k < rows; k++) {
    states.get(m, k, q);
    out[k] = stored_energy(m, q, all.at(m, k));
  }
}

// Writes the Darboux vectors of all bends in all states.
void darboux_into(const Model& m, int rows, const Numbers& positions, const Numbers& rotations,
                  const Doubles& vectors) {
  StateRows states{data(positions, rows * 3 * m.mass.size()),
                   data(rotations, rows * 9 * m.moment.size())};
  double* out = data(vectors, rows * 3 * m.bends.size());
  State q{std::vector<Vec3>(m.mass.size()), std::vector<Mat3>(m.moment.size())};
  for (int k = 0; k < rows; k++) {
    states.get(m, k, q);
    for (const Bend& b : m.bends) store3(out, darboux(m, b, q)), out += 3;
  }
}

// Writes the forces and torques of contacts and friction at the end of step k.
void contact_forces_into(const Model& m, int k, const Numbers& past_x, const Numbers& past_R,
                         const Numbers& x, const Numbers& R, const Doubles& forces,
                         const Doubles& torques) {
  const PastStates past(m, past_x, past_R);
  Problem problem(m, Scheme::at(m, k), past.states(), {});
  const State q = read_state(m, x, R);
  Tangent gradient(m.slots());
  Sum sum;
  sum.gradient = &gradient;
  add_contacts(problem, q, sum);
  add_segments(problem, q, sum);
  for (Vec3& g : gradient) g = -g;
  write_tangent(m, gradient, forces, torques);
}

// Adds the derivatives of z . gradient of the potential of step k with respect to everything except
// for (x, R). `past_bars` are those of the earlier states: points and frames of each.
void pull_back_step_into(const Model& m, int k, const Numbers& past_x, const Numbers& past_R,
                         const InputArrays& inputs, const Numbers& x, const Numbers& R,
                         const Numbers& z_points, const Numbers& z_frames,
                         const BarArrays& input_bars, const std::vector<Doubles>& parameter_bars,
                         const std::vector<std::pair<Doubles, Doubles>>& past_bars) {
  const PastStates past(m, past_x, past_R);
  Problem problem(m, Scheme::at(m, k), past.states(), read_inputs(m, 1, inputs).at(m, 0));
  Tangent z =
      read_tangent(m, data(z_points, 3 * m.mass.size()), data(z_frames, 3 * m.moment.size()));
  Bars bars(m);
  InputBars rows = read_bars(m, 1, input_bars);
  bars.forces = rows.forces, bars.torques = rows.torques, bars.tensions = rows.tensions;
  bars.rest = rows.rest, bars.targets = rows.targets;
  std::vector<Tangent> made(kPast, Tangent(m.slots()));
  for (int j = 0; j < kPast; j++) bars.past[j] = &made[j];
  pull_back(problem, read_state(m, x, R), z, bars);
  write_parameters(bars, parameter_bars);
  for (size_t j = 0; j < past_bars.size(); j++) {
    write_tangent(m, made.at(j), past_bars[j].first, past_bars[j].second);
  }
}

}  // namespace

void bind_rods(nb::module_& module) {
  using nb::arg;
  bind_rod_model(module);
  module.def("rods_simulate_into", &simulate_into, arg("model"), arg("before_x"), arg("before_R"),
             arg("steps"), arg("inputs"), arg("tolerance"), arg("iterations"), arg("persist"),
             arg("positions"), arg("rotations"), arg("reports"));
  module.def("rods_pull_back_into", &pull_back_into, arg("model"), arg("before_x"), arg("before_R"),
             arg("steps"), arg("inputs"), arg("positions"), arg("rotations"), arg("d_positions"),
             arg("d_rotations"), arg("d_step_x"), arg("d_step_R"), arg("input_bars"),
             arg("parameter_bars"), arg("first_bars"), arg("norms"));
  module.def("rods_evaluate_into", &evaluate_into);
  module.def("rods_timings", &timings);
  module.def("rods_stored_energies_into", &stored_energies_into, arg("model"), arg("rows"),
             arg("inputs"), arg("positions"), arg("rotations"), arg("energies"));
  module.def("rods_darboux_into", &darboux_into, arg("model"), arg("rows"), arg("positions"),
             arg("rotations"), arg("vectors"));
  module.def("rods_contact_forces_into", &contact_forces_into, arg("model"), arg("step"),
             arg("past_x"), arg("past_R"), arg("x"), arg("R"), arg("forces"), arg("torques"));
  module.def("rods_pull_back_step_into", &pull_back_step_into);
}

}  // namespace mujacobian

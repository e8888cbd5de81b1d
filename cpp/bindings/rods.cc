#include "bindings/rods.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "bindings/errors.h"
#include "layout/platform.h"
#include "rods/trajectory.h"

namespace mujacobian {
namespace {

namespace nb = nanobind;
using namespace rods;  // NOLINT: this file is about nothing else

using Doubles = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const int, nb::c_contig, nb::device::cpu>;
template <class T>
using Maybe = std::optional<T>;

// Returns the data of an array, and raises if its number of entries is wrong
template <class A>
auto* data(const A& array, size_t size) {
  if (array.size() != size) {
    raise_argument("an array has " + std::to_string(array.size()) + " entries, not " +
                   std::to_string(size));
  }
  return array.data();
}
template <class A>
auto data(const Maybe<A>& array, size_t size) -> decltype(data(*array, size)) {
  return array ? data(*array, size) : nullptr;
}

Vec3 vec3(const Numbers& array) { return load3(data(array, 3)); }

std::vector<double> doubles(const Numbers& a) { return {a.data(), a.data() + a.size()}; }
std::vector<int> integers(const Integers& a) { return {a.data(), a.data() + a.size()}; }
std::vector<char> flags(const Integers& a) { return {a.data(), a.data() + a.size()}; }
std::vector<Vec3> vectors(const Numbers& a) {
  std::vector<Vec3> all;
  for (size_t i = 0; i + 2 < a.size(); i += 3) all.push_back(load3(a.data() + i));
  return all;
}
std::vector<Mat3> matrices(const Numbers& a) {
  std::vector<Mat3> all;
  for (size_t i = 0; i + 8 < a.size(); i += 9) all.push_back(load9(a.data() + i));
  return all;
}

MaterialPoint material_point(const int* i, const double* x) {
  return {{i[0], i[1]}, {x[0], x[1]}, i[2], load3(x + 2)};
}

void construct(Model* m, double timestep, const Numbers& gravity, const Numbers& mass,
               const Numbers& drag, const Integers& point_fixed, const Integers& point_slot,
               const Numbers& moment, const Numbers& spin_drag, const Integers& frame_fixed,
               const Integers& frame_slot, int targets, int order) {
  const size_t points = mass.size(), frames = spin_drag.size();
  data(drag, points), data(point_fixed, points), data(point_slot, points);
  data(moment, 9 * frames), data(frame_fixed, frames), data(frame_slot, frames);
  new (m) Model{};
  m->timestep = timestep;
  m->gravity = vec3(gravity);
  m->mass = doubles(mass), m->drag = doubles(drag);
  m->point_fixed = flags(point_fixed), m->point_slot = integers(point_slot);
  m->moment = matrices(moment), m->spin_drag = doubles(spin_drag);
  m->frame_fixed = flags(frame_fixed), m->frame_slot = integers(frame_slot);
  m->targets = targets;
  m->order = order;
}

void append_edges(Model& m, const Integers& ids, const Numbers& values) {
  data(values, 4 * (ids.size() / 3));
  for (size_t k = 0; 3 * k < ids.size(); k++) {
    const int* i = ids.data() + 3 * k;
    const double* x = values.data() + 4 * k;
    m.edges.push_back({i[0], i[1], i[2], x[0], x[1], x[2], x[3]});
  }
}

// Per bend: the indices of two edges (-1: the wall of a clamp) and whether the measure is a
// tangent; stiffness, damping and the axes of the wall.
void append_bends(Model& m, const Integers& ids, const Numbers& values) {
  data(values, 15 * (ids.size() / 3));
  auto length = [&](int edge) { return edge < 0 ? 0 : m.edges[edge].length; };
  for (size_t k = 0; 3 * k < ids.size(); k++) {
    const int* i = ids.data() + 3 * k;
    const double* x = values.data() + 15 * k;
    m.bends.push_back({i[0], i[1], 0.5 * (length(i[0]) + length(i[1])), load3(x), load3(x + 3),
                       i[2] != 0, load9(x + 6)});
  }
}

void add_spring(Model& m, const Integers& ids, const Numbers& values, int target,
                double stiffness) {
  const int* i = data(ids, 6);
  const double* x = data(values, 10);
  m.springs.push_back(
      {material_point(i, x), material_point(i + 3, x + 5), target, m.attachments(), stiffness});
}

void add_weld(Model& m, int first, int second, const Numbers& first_axes,
              const Numbers& second_axes, double stiffness) {
  m.welds.push_back({first, second, load9(data(first_axes, 9)), load9(data(second_axes, 9)),
                     m.attachments(), stiffness});
}

void add_cable(Model& m, const Integers& ids, const Numbers& values) {
  Cable c;
  for (size_t k = 0; 3 * k < ids.size(); k++) {
    c.path.push_back(material_point(ids.data() + 3 * k, values.data() + 5 * k));
  }
  m.cables.push_back(c);
}

// Adds a surface, and spheres about material points that can touch it
void add_contacts_with(Model& m, const Integers& ids, const Numbers& values,
                       const Integers& rolling, int shape, int body_point, int body_frame,
                       double radius, double stiffness, double friction, double slip) {
  const int* frames = data(rolling, 2 * (ids.size() / 3));
  (void)m.shapes.at(shape);  // `added` in Python has checked it
  const int surface = static_cast<int>(m.surfaces.size());
  m.surfaces.push_back({shape, body_point, body_frame, radius, stiffness, friction, slip});
  for (size_t k = 0; 3 * k < ids.size(); k++) {
    m.contacts.push_back({material_point(ids.data() + 3 * k, values.data() + 5 * k),
                          surface,
                          {frames[2 * k], frames[2 * k + 1]}});
  }
}

int keep(Model& m, std::shared_ptr<const Shape> shape) {
  m.shapes.push_back(std::move(shape));
  return static_cast<int>(m.shapes.size()) - 1;
}

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
  Skyline H(m.slots(), couplings(m));
  Sum sum;
  sum.gradient = &gradient;
  sum.hessian = hessian ? &H : nullptr;
  evaluate(problem, read_state(m, x, R), sum);
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
  for (int i = 0; i < n; i++) {
    for (int j = H.first(i); j <= i; j++) {
      for (int e = 0; e < 9; e++) {
        int r = 3 * place[i] + e / 3, c = 3 * place[j] + e % 3;
        out[3 * n * r + c] = out[3 * n * c + r] = H.at(i, j).m[e];
      }
    }
  }
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
  Skyline H(m.slots(), couplings(m));
  Factor factor(H);
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
  nb::class_<Model>(module, "RodModel")
      .def("__init__", &construct, arg("timestep"), arg("gravity"), arg("mass"), arg("drag"),
           arg("point_fixed"), arg("point_slot"), arg("moment"), arg("spin_drag"),
           arg("frame_fixed"), arg("frame_slot"), arg("targets"), arg("order"))
      .def("add_edges", &append_edges)
      .def("add_bends", &append_bends)
      .def("add_spring", &add_spring)
      .def("add_weld", &add_weld)
      .def("add_cable", &add_cable)
      .def("add_contacts", &add_contacts_with, arg("ids"), arg("values"), arg("rolling"),
           arg("shape"), arg("body_point"), arg("body_frame"), arg("radius"), arg("stiffness"),
           arg("friction"), arg("slip"))
      .def("add_plane",
           [](Model& m, const Numbers& normal, double offset) {
             return keep(m, std::make_shared<Plane>(vec3(normal), offset));
           })
      .def("add_tube",
           [](Model& m, const Numbers& vertices, double radius) {
             return keep(m, std::make_shared<Tube>(vectors(vertices), radius));
           })
      .def("add_box",
           [](Model& m, const Numbers& half, const Numbers& center, const Numbers& axes) {
             Mat3 turned = load9(data(axes, 9));
             return keep(m, std::make_shared<Box>(vec3(half), vec3(center), turned));
           })
      .def("add_union",
           [](Model& m, const std::vector<int>& parts) {
             std::vector<std::shared_ptr<const Shape>> all;
             for (int k : parts) all.push_back(m.shapes.at(k));
             return keep(m, std::make_shared<Union>(all));
           })
      .def("add_complement",
           [](Model& m, int shape) {
             return keep(m, std::make_shared<Complement>(m.shapes.at(shape)));
           })
      .def("shapes", [](const Model& m) { return m.shapes.size(); })
      .def("hessian_blocks",
           [](const Model& m) { return Skyline(m.slots(), couplings(m)).blocks(); });
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
  module.def("rods_pull_back_step_into", &pull_back_step_into);
}

}  // namespace mujacobian

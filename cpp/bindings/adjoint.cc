#include "bindings/adjoint.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "adjoint/frame.h"
#include "adjoint/trajectory.h"
#include "bindings/errors.h"
#include "layout/engine.h"
#include "layout/unsupported.h"
#include "step/support.h"

namespace mujacobian {

std::vector<Parameter> read(const ModelView& m, const Parameters& all, bool mocap) {
  std::vector<Parameter> list;
  for (const auto& [kind, id, component] : all) list.push_back({kind, id, component});
  if (mocap) append_mocap(m, list);
  return list;
}

namespace {

// The model and data of a call.
struct State {
  Pair pair;
  const void* model = pair.model;
  void* data = pair.data;
  ModelView m = view_model(model);
  DataView d = view_data(data);

  State(nb::handle model_object, nb::handle data_object) : pair(model_object, data_object) {}

  // Checks that the state is supported, and runs mj_forward if `run_forward` is true.
  void evaluate(bool run_forward, bool sensors) {
    require_model(m);
    if (sensors) require_sensors(m);
    require_state(m, d);
    if (!run_forward) return;
    forward(model, data);
    d = view_data(data);
  }
};

// (name, field, element, components, unit, lower bound) of each Parameter::Kind, in its order.
std::vector<std::tuple<std::string, std::string, int, int, std::string, double>> parameter_kinds() {
  std::vector<std::tuple<std::string, std::string, int, int, std::string, double>> all;
  for (int kind = 0; kind < Parameter::kCount; kind++) {
    const ParameterKind& k = kind_of({kind, 0, 0});
    all.emplace_back(k.name, k.field, k.element, k.components, k.unit, k.lower);
  }
  return all;
}

// Raises if the derivative with respect to a parameter is not supported in the model.
void require_all(nb::handle model, const Parameters& parameters) {
  const ModelView m = view_model(model_address(model));
  const std::vector<Parameter> list = read(m, parameters);
  run([&] { require_parameters(m, view(list)); });
}

void vjp_into(nb::handle model, nb::handle data, nb::handle next_state, nb::handle sensors,
              const Parameters& parameters, nb::handle state, nb::handle ctrl, nb::handle force,
              nb::handle params, bool mocap, bool run_forward) {
  State s(model, data);
  const std::vector<Parameter> list = read(s.m, parameters, mocap);
  const Py_ssize_t nx = state_size(s.m), count = list.size();
  Array next(next_state, "next state", {nx}, false),
      sensed(sensors, "sensors", {s.m.nsensordata}, false), x(state, "state", {nx}, true),
      u(ctrl, "ctrl", {s.m.nu}, true), f(force, "force", {s.m.nv}, true),
      p(params, "params", {count}, true);
  run(model, [&] {
    s.evaluate(run_forward, sensed.data());
    thread_local Arena arena;
    arena.reset();
    vjp(s.m, s.d, {next.data(), sensed.data()}, view(list),
        {x.data(), u.data(), f.data(), p.data()}, arena);
  });
}

void jvp_into(nb::handle model, nb::handle data, nb::handle state, nb::handle ctrl,
              nb::handle force, const Parameters& parameters, nb::handle params, bool mocap,
              nb::handle next_state, nb::handle sensors, bool run_forward) {
  State s(model, data);
  const std::vector<Parameter> list = read(s.m, parameters, mocap);
  const Py_ssize_t nx = state_size(s.m), count = list.size();
  Array next(next_state, "next state", {nx}, true),
      sensed(sensors, "sensors", {s.m.nsensordata}, true), x(state, "state", {nx}, false),
      u(ctrl, "ctrl", {s.m.nu}, false), f(force, "force", {s.m.nv}, false),
      p(params, "params", {count}, false);
  run(model, [&] {
    s.evaluate(run_forward, sensed.data());
    thread_local Arena arena;
    arena.reset();
    const Tangent along{x.data(), u.data(), f.data(), p.data()};
    const Change made{next.data(), sensed.data()};
    require_parameters(s.m, view(list));
    const bool direct = p.data() && sensed.data() && sensors_depend(s.m, view(list), nullptr);
    jvp(s.m, s.d, &along, view(list), direct, &made, 1, arena);
  });
}

// Writes the derivatives of lengths and moments of tendons and actuators with respect to frames,
// (paths, parameters, 1 + nv). The caller has run mj_kinematics, mj_comPos and mj_tendon.
void frame_paths_into(nb::handle model, nb::handle data, const Parameters& parameters,
                      const std::vector<int>& tendons, const std::vector<int>& actuators,
                      nb::handle paths) {
  State s(model, data);
  const std::vector<Parameter> list = read(s.m, parameters);
  const Py_ssize_t count = list.size(), total = tendons.size() + actuators.size();
  Array out(paths, "paths", {total, count, 1 + s.m.nv}, true);
  run([&] {
    thread_local Arena arena;
    arena.reset();
    const ParameterList params = view(list);
    Frames frames(s.m, s.d, params, arena);
    double* to = out.data();
    const Py_ssize_t stride = count * (1 + s.m.nv);
    for (int t : tendons) frames.write_tendon(t, to), to += stride;
    for (int a : actuators) frames.write_actuator(a, to), to += stride;
  });
}

int simulate_into(nb::handle model, nb::handle data, nb::handle state, int steps, nb::handle ctrl,
                  nb::handle force, nb::handle wrench, nb::handle mocap, int every,
                  nb::handle start, nb::handle states, nb::handle sensors) {
  State s(model, data);
  const Py_ssize_t T = steps, size = engine().mj_stateSize(s.model, engine().integration_spec);
  Array x(state, "state", {size}, false), u(ctrl, "controls", {T, s.m.nu}, false),
      f(force, "forces", {T, s.m.nv}, false), w(wrench, "wrenches", {T, s.m.nbody, 6}, false),
      p(mocap, "mocap", {T, 7 * s.m.nmocap}, false),
      kept(start, "start", {(T + every - 1) / every, size}, true),
      visited(states, "states", {T + 1, s.m.nq + s.m.nv + s.m.na}, true),
      sensed(sensors, "sensors", {T, s.m.nsensordata}, true);
  int taken = 0;
  run([&] {
    taken = simulate(s.model, s.data, x.data(), steps, {u.data(), f.data(), w.data(), p.data()},
                     {kept.data(), every, visited.data(), sensed.data()});
  });
  return taken;
}

// Throws Unsupported if trajectories of the model are not supported, or the sensors if they count.
void require_trajectory(const ModelView& m, bool sensors) {
  require_model(m);
  if (!sensors) return;
  require_sensors(m);
  require_open_histories(m);
}

// Runs f(), which differentiates steps one after the other, and raises its error with the number of
// the step, counted from `first`. If `may_refuse` is true, a step without an exact derivative is no
// error, but its index is returned; -1: there is none. `begin` is the step that f evaluates first,
// at which it stops if the model itself is not supported.
template <class F>
int run_steps(nb::handle model, int first, int begin, bool may_refuse, F f) {
  std::optional<BatchFailure> failure;
  run([&] {
    try {
      failure = f();
    } catch (const Unsupported&) {
      if (!may_refuse) throw;
      failure = BatchFailure{begin, std::current_exception()};
    }
  });
  if (failure) {
    try {
      std::rethrow_exception(failure->error);
    } catch (const Unsupported&) {
      if (may_refuse) return failure->index;
    } catch (const std::exception&) {
    }
    raise(failure->error, "step " + std::to_string(first + failure->index) + ": ");
  }
  report_notices(model);
  return -1;
}

int pull_back_into(nb::handle model, nb::handle data, nb::handle start, int steps,
                   nb::handle d_states, nb::handle d_sensors, const Parameters& parameters,
                   nb::handle ctrl, nb::handle force, nb::handle wrench, nb::handle mocap,
                   nb::handle params, nb::handle norms, nb::handle cotangent, int first,
                   bool may_refuse) {
  State s(model, data);
  const Py_ssize_t T = steps, size = engine().mj_stateSize(s.model, engine().integration_spec);
  const Py_ssize_t nx = state_size(s.m), count = parameters.size();
  Array kept(start, "start", {T, size}, false), x(d_states, "d_states", {T, nx}, false),
      sensed(d_sensors, "d_sensors", {T, s.m.nsensordata}, false),
      u(ctrl, "controls", {T, s.m.nu}, true), f(force, "forces", {T, s.m.nv}, true),
      w(wrench, "wrenches", {T, s.m.nbody, 6}, true),
      poses(mocap, "mocap", {T, s.m.nmocap, 6}, true), p(params, "params", {count}, true),
      sizes(norms, "norms", {T}, true), back(cotangent, "cotangent", {nx}, true);
  const std::vector<Parameter> list = read(s.m, parameters);
  return run_steps(model, first, steps - 1, may_refuse, [&] {
    require_trajectory(s.m, sensed.data());
    thread_local Arena arena;
    return pull_back(s.model, s.data, kept.data(), steps, {x.data(), sensed.data()}, view(list),
                     {u.data(), f.data(), w.data(), poses.data(), p.data(), sizes.data()},
                     back.data(), nullptr, arena);
  });
}

int push_forward_into(nb::handle model, nb::handle data, nb::handle start, int steps, int count,
                      const Parameters& parameters, nb::handle params, nb::handle states,
                      nb::handle sensors, nb::handle weights, int first, bool may_refuse) {
  State s(model, data);
  const Py_ssize_t T = steps, size = engine().mj_stateSize(s.model, engine().integration_spec);
  const Py_ssize_t nx = state_size(s.m), n = count, width = parameters.size();
  Array kept(start, "start", {T, size}, false), p(params, "params", {n, width}, false),
      x(states, "states", {T + 1, n, nx}, true),
      sensed(sensors, "sensors", {T, n, s.m.nsensordata}, true),
      wanted(weights, "weights", {s.m.nsensordata}, false);
  const std::vector<Parameter> list = read(s.m, parameters);
  return run_steps(model, first, 0, may_refuse, [&] {
    require_trajectory(s.m, sensed.data());
    return push_forward(s.model, s.data, kept.data(), steps, view(list),
                        {count, p.data(), x.data(), sensed.data(), wanted.data()});
  });
}

void push_direction_into(nb::handle model, nb::handle data, nb::handle start, int steps,
                         nb::handle ctrl, const Parameters& parameters, nb::handle params,
                         nb::handle states, nb::handle sensors, int first, KeptTrajectory* kept,
                         int most, nb::handle d_sensors) {
  State s(model, data);
  const Py_ssize_t T = steps, size = engine().mj_stateSize(s.model, engine().integration_spec);
  Array rows(start, "start", {T, size}, false), u(ctrl, "controls", {T, s.m.nu}, false),
      p(params, "params", {static_cast<Py_ssize_t>(parameters.size())}, false),
      x(states, "states", {T + 1, state_size(s.m)}, true),
      sensed(sensors, "sensors", {T, s.m.nsensordata}, true),
      given(d_sensors, "d_sensors", {T, s.m.nsensordata}, false);
  const std::vector<Parameter> list = read(s.m, parameters);
  run_steps(model, first, 0, false, [&] {
    require_trajectory(s.m, sensed.data());
    thread_local Arena arena;
    return push_direction(s.model, s.data, rows.data(), steps, u.data(), {view(list), p.data()},
                          x.data(), sensed.data(),
                          {may_keep(s.m) ? kept : nullptr, most, given.data()}, arena);
  });
}

void pull_back_twice_into(nb::handle model, nb::handle data, nb::handle start, int steps,
                          nb::handle d_states, nb::handle d_sensors, nb::handle moved,
                          nb::handle moved_ctrl, nb::handle changes, const Parameters& parameters,
                          nb::handle moved_params, nb::handle ctrl, nb::handle norms,
                          nb::handle by_params, nb::handle params, nb::handle cotangent,
                          nb::handle change, int first, const KeptTrajectory* kept) {
  State s(model, data);
  const Py_ssize_t T = steps, size = engine().mj_stateSize(s.model, engine().integration_spec);
  const Py_ssize_t nx = state_size(s.m), nu = s.m.nu, width = parameters.size();
  Array rows(start, "start", {T, size}, false), x(d_states, "d_states", {T, nx}, false),
      sensed(d_sensors, "d_sensors", {T, s.m.nsensordata}, false),
      dp(moved_params, "moved_params", {width}, false), g(by_params, "by_params", {width}, true),
      p(params, "params", {width}, true), dx(moved, "moved", {T, nx}, false),
      du(moved_ctrl, "moved_ctrl", {T, nu}, false), dg(changes, "changes", {T, nx}, false),
      u(ctrl, "controls", {T, nu}, true), sizes(norms, "norms", {T}, true),
      back(cotangent, "cotangent", {nx}, true), second(change, "change", {nx}, true);
  const std::vector<Parameter> list = read(s.m, parameters);
  run_steps(model, first, steps - 1, false, [&] {
    require_trajectory(s.m, sensed.data());
    return pull_back_twice(s.model, s.data, rows.data(), steps, {x.data(), sensed.data()},
                           {dx.data(), du.data(), dg.data(), {view(list), dp.data()}}, u.data(),
                           sizes.data(), {g.data(), p.data()}, back.data(), second.data(),
                           kept && !kept->steps.empty() ? kept : nullptr);
  });
}

int simulate_and_push_into(nb::handle model, nb::handle data, nb::handle state, int steps,
                           nb::handle ctrl, nb::handle force, nb::handle wrench, nb::handle mocap,
                           nb::handle visited, nb::handle sensordata, int count,
                           const Parameters& parameters, nb::handle params, nb::handle states,
                           nb::handle sensors, nb::handle weights) {
  State s(model, data);
  const Py_ssize_t T = steps, size = engine().mj_stateSize(s.model, engine().integration_spec);
  const Py_ssize_t nx = state_size(s.m), n = count, width = parameters.size();
  const Py_ssize_t ns = s.m.nsensordata;
  Array first(state, "state", {size}, false), u(ctrl, "controls", {T, s.m.nu}, false),
      f(force, "forces", {T, s.m.nv}, false), w(wrench, "wrenches", {T, s.m.nbody, 6}, false),
      poses(mocap, "mocap", {T, 7 * s.m.nmocap}, false),
      rows(visited, "visited", {T + 1, s.m.nq + s.m.nv + s.m.na}, true),
      readings(sensordata, "sensordata", {T, ns}, true), p(params, "params", {n, width}, false),
      x(states, "states", {T + 1, n, nx}, true), sensed(sensors, "sensors", {T, n, ns}, true),
      wanted(weights, "weights", {ns}, false);
  const std::vector<Parameter> list = read(s.m, parameters);
  std::optional<BatchFailure> failure;
  int taken = 0;
  run([&] {
    require_no_history(s.m, sensed.data());
    require_model(s.m);
    const ParameterList all = view(list);
    if (sensed.data()) require_sensors(s.m);
    failure = simulate_and_push(s.model, s.data, first.data(), steps,
                                {u.data(), f.data(), w.data(), poses.data()},
                                {nullptr, 1, rows.data(), readings.data()}, all,
                                {count, p.data(), x.data(), sensed.data(), wanted.data()}, taken);
  });
  if (failure) raise(failure->error, "step " + std::to_string(failure->index) + ": ");
  report_notices(model);
  return taken;
}

}  // namespace

void bind_adjoint(nb::module_& module) {
  using nb::arg;
  nb::class_<KeptTrajectory>(module, "KeptTrajectory")
      .def(nb::init<>())
      .def("clear", &KeptTrajectory::clear);
  module.attr("MOST_KEPT_STEPS") = kMostKeptSteps;
  module.def("parameter_kinds", &parameter_kinds);
  module.def("require_parameters", &require_all, arg("model"), arg("parameters"));
  module.def("vjp_into", &vjp_into, arg("model").none(), arg("data").none(),
             arg("next_state").none(), arg("sensors").none(), arg("parameters"),
             arg("state").none(), arg("ctrl").none(), arg("force").none(), arg("params").none(),
             arg("mocap"), arg("forward"));
  module.def("jvp_into", &jvp_into, arg("model").none(), arg("data").none(), arg("state").none(),
             arg("ctrl").none(), arg("force").none(), arg("parameters"), arg("params").none(),
             arg("mocap"), arg("next_state").none(), arg("sensors").none(), arg("forward"));
  module.def("frame_paths_into", &frame_paths_into, arg("model").none(), arg("data").none(),
             arg("parameters"), arg("tendons"), arg("actuators"), arg("paths"));
  module.def("simulate_into", &simulate_into, arg("model").none(), arg("data").none(), arg("state"),
             arg("steps"), arg("ctrl").none(), arg("force").none(), arg("wrench").none(),
             arg("mocap").none(), arg("every"), arg("start").none(), arg("states").none(),
             arg("sensors").none());
  module.def("pull_back_into", &pull_back_into, arg("model").none(), arg("data").none(),
             arg("start"), arg("steps"), arg("d_states").none(), arg("d_sensors").none(),
             arg("parameters"), arg("ctrl").none(), arg("force").none(), arg("wrench").none(),
             arg("mocap").none(), arg("params").none(), arg("norms").none(), arg("cotangent"),
             arg("first"), arg("may_refuse") = false);
  module.def("push_direction_into", &push_direction_into, arg("model").none(), arg("data").none(),
             arg("start"), arg("steps"), arg("controls"), arg("parameters"), arg("params").none(),
             arg("states"), arg("sensors").none(), arg("first"), arg("kept").none(), arg("most"),
             arg("d_sensors").none());
  module.def("pull_back_twice_into", &pull_back_twice_into, arg("model").none(), arg("data").none(),
             arg("start"), arg("steps"), arg("d_states"), arg("d_sensors").none(), arg("moved"),
             arg("moved_ctrl"), arg("changes").none(), arg("parameters"),
             arg("moved_params").none(), arg("controls"), arg("norms"), arg("by_params").none(),
             arg("params").none(), arg("cotangent"), arg("change"), arg("first"),
             arg("kept").none());
  module.def("simulate_and_push_into", &simulate_and_push_into, arg("model").none(),
             arg("data").none(), arg("state"), arg("steps"), arg("ctrl").none(),
             arg("force").none(), arg("wrench").none(), arg("mocap").none(), arg("visited"),
             arg("sensordata"), arg("count"), arg("parameters"), arg("params"), arg("states"),
             arg("sensors").none(), arg("weights"));
  module.def("push_forward_into", &push_forward_into, arg("model").none(), arg("data").none(),
             arg("start"), arg("steps"), arg("count"), arg("parameters"), arg("params").none(),
             arg("states"), arg("sensors").none(), arg("weights").none(), arg("first"),
             arg("may_refuse") = false);
}

}  // namespace mujacobian

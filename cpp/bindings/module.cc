// The compiled module mujacobian._core.
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <numeric>

#include "adjoint/parameter_support.h"
#include "bindings/adjoint.h"
#include "bindings/control.h"
#include "bindings/cost.h"
#include "bindings/errors.h"
#include "bindings/ffi.h"
#include "bindings/rods.h"
#include "bindings/second_order.h"
#include "bindings/stepper.h"
#include "bindings/worlds.h"
#include "contact/collider.h"
#include "dynamics/convergence.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "second_order/support.h"
#include "sensor/type.h"
#include "step/batch.h"
#include "step/diagnostics.h"
#include "step/inverse.h"
#include "step/support.h"
#include "step/transition.h"

namespace mujacobian {
namespace {

// (struct, name, kind, optional, old name or None) of each field
using Fields = std::vector<
    std::tuple<std::string, std::string, std::string, bool, std::optional<std::string>>>;

Fields list_fields() {
  Fields all;
  for (const Field& f : fields()) {
    const auto old_name = f.old_name ? std::optional<std::string>(f.old_name) : std::nullopt;
    all.emplace_back(f.structure, f.name, f.kind, f.optional, old_name);
  }
  return all;
}

// (name, is a function, optional) of each symbol
std::vector<std::tuple<std::string, bool, bool>> list_symbols() {
  std::vector<std::tuple<std::string, bool, bool>> all;
  for (const Symbol& s : symbols()) all.emplace_back(s.name, s.is_function, s.optional);
  return all;
}

// (enum, enumerator, value)
using Enumerators = std::vector<std::tuple<std::string, std::string, int>>;

Enumerators list_enumerators() {
  return {
#define MUJACOBIAN_ENTRY(SPACE, NAME, ENUM, ORIGINAL, VALUE) {#ENUM, #ORIGINAL, VALUE},
      MUJACOBIAN_ENUMERATORS(MUJACOBIAN_ENTRY) MUJACOBIAN_SENSORS(MUJACOBIAN_ENTRY)
#undef MUJACOBIAN_ENTRY
  };
}

// Sets the layout of the installed MuJoCo, the addresses of its functions, and our Python types.
void configure(const std::vector<std::pair<int, int>>& places, int option_offset, int contact_size,
               int model_size, const std::map<std::string, std::uintptr_t>& addresses,
               const std::map<std::string, int>& constants, nb::object model_type,
               nb::object data_type, nb::object error, nb::object unsupported_error,
               nb::object argument_error, nb::object argument_type_error, nb::object domain_error,
               nb::object require_data, nb::object notice) {
  std::vector<Place> all;
  for (auto [offset, size] : places) all.push_back({offset, size});
  set_layout(all, option_offset, contact_size, model_size);
  set_engine(addresses, constants);
  python_types() = {model_type,        data_type,      error,
                    unsupported_error, argument_error, argument_type_error,
                    domain_error,      require_data,   notice};
}

// Whether each sensor is wanted; empty: all are.
using Wanted = std::vector<bool>;

// Writes all blocks of one state into the caller's arrays. None: not computed. Rows of sensors that
// are not wanted are not written.
void linearize_into(nb::handle model, nb::handle data, nb::handle A, nb::handle B, nb::handle C,
                    nb::handle D, nb::handle Bf, nb::handle Df, bool run_forward, bool control,
                    bool passive, const Wanted& wanted, bool open_histories) {
  const Pair pair(model, data);
  ModelView m = view_model(pair.model);
  m.open_histories = open_histories;
  DataView d = view_data(pair.data);
  const Py_ssize_t nx = state_size(m), ns = m.nsensordata;
  Array a(A, "A", {nx, nx}, true), b(B, "B", {nx, m.nu}, true), c(C, "C", {ns, nx}, true),
      dd(D, "D", {ns, m.nu}, true), bf(Bf, "Bf", {nx, m.nv}, true), df(Df, "Df", {ns, m.nv}, true);
  require_apart({&a, &b, &c, &dd, &bf, &df});
  const std::vector<unsigned char> mask(wanted.begin(), wanted.end());
  const unsigned char* sensors = wanted.empty() ? nullptr : mask.data();
  run(model, [&] {
    require_model(m, {control, passive});
    if (c.data() || dd.data() || df.data()) {
      require_sensors(m, sensors);
      if (open_histories) require_open_histories(view_model(pair.model));
    }
    require_state(m, d);
    if (run_forward) {
      forward(pair.model, pair.data);
      d = view_data(pair.data);
    }
    thread_local Arena arena;
    arena.reset();
    transition(m, d, {a.data(), b.data(), c.data(), dd.data(), bf.data(), df.data(), sensors},
               arena);
  });
}

// Checks a state that has no exact derivative before it is differenced, and runs mj_forward if
// `run_forward` is true.
void check_state(nb::handle model, nb::handle data, bool run_forward) {
  const Pair pair(model, data);
  run([&] {
    require_state(view_model(pair.model), view_data(pair.data));
    if (run_forward) forward(pair.model, pair.data);
  });
}

// Returns None, or with a fallback the differenced elements.
nb::object transition_into(nb::handle model, nb::handle data, nb::handle A, nb::handle B,
                           nb::handle C, nb::handle D, bool run_forward, nb::handle fallback) {
  if (fallback.is_none()) {
    linearize_into(model, data, A, B, C, D, nb::none(), nb::none(), run_forward, false, false, {},
                   false);
    return nb::none();
  }
  const ModelView m = view_model(model_address(model));
  const Py_ssize_t nx = state_size(m), ns = m.nsensordata;
  Array a(A, "A", {nx, nx}, true), b(B, "B", {nx, m.nu}, true), c(C, "C", {ns, nx}, true),
      dd(D, "D", {ns, m.nu}, true);
  require_apart({&a, &b, &c, &dd});
  const nb::object difference = nb::module_::import_("mujacobian._fallback").attr("transition");
  return difference(model, data, A, B, C, D, run_forward, fallback);
}

constexpr const char* kTransitionDoc = R"(Write the exact Jacobians of one `mj_step` into arrays.

The arguments are those of `mjd_transitionFD` without its step size. The result is that of
`linearize`, but no memory is allocated.

Args:
  model: any model that MuJoCo loads.
  data: the state, controls and applied forces; the state is not changed.
  A: `(nx, nx)`, derivatives of the next state with respect to the state, with nx = 2 nv + na. This
    array and the others are outputs of double precision; None leaves one out.
  B: `(nx, nu)`, derivatives of the next state with respect to the controls.
  C: `(ns, nx)`, derivatives of the sensors with respect to the state.
  D: `(ns, nu)`, derivatives of the sensors with respect to the controls.
  forward: run `mj_forward` first. Use False if you have just called it on this state.
  fallback: "fd" replaces derivatives that do not exist in exact form by finite differences, as in
    `linearize`, and returns a tuple with one `Differenced` per element. By default None.

Example:
  >>> import mujoco, mujacobian, numpy as np
  >>> model = mujoco.MjModel.from_xml_string(
  ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
  ...     "</worldbody></mujoco>")
  >>> data, A = mujoco.MjData(model), np.empty((2, 2))
  >>> mujacobian.transition(model, data, A)
  >>> bool((A == mujacobian.linearize(model, data).A).all())
  True
)";

constexpr const char* kInverseDoc = R"(Write the exact Jacobians of `mj_inverse` into arrays.

The arguments are those of `mjd_inverseFD` without its step size. As there, the rows of all outputs
are the inputs: row i of `DfDq` contains the derivatives of all forces with respect to position i.

Args:
  model: any model that MuJoCo loads.
  data: the positions, velocities and accelerations, which are not changed.
  DfDq: `(nv, nv)`, derivatives of `qfrc_inverse` with respect to positions. This array and the
    others are outputs of double precision; None leaves one out.
  DfDv: `(nv, nv)`, the same with respect to velocities.
  DfDa: `(nv, nv)`, the same with respect to accelerations.
  DsDq: `(nv, ns)`, derivatives of `sensordata` with respect to positions.
  DsDv: `(nv, ns)`, the same with respect to velocities.
  DsDa: `(nv, ns)`, the same with respect to accelerations.
  DmDq: `(nv, nC)`, derivatives of the entries of the mass matrix `data.M`.
  actuation: subtract `qfrc_actuator` from the force.

Example:
  >>> import mujoco, mujacobian, numpy as np
  >>> model = mujoco.MjModel.from_xml_string(
  ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1' mass='2'/>"
  ...     "</body></worldbody></mujoco>")
  >>> data, DfDa = mujoco.MjData(model), np.empty((1, 1))
  >>> mujacobian.inverse(model, data, DfDa=DfDa)
  >>> round(float(DfDa[0, 0]), 3)  # the inertia of the pendulum
  2.008
)";

void inverse_into(nb::handle model, nb::handle data, nb::handle DfDq, nb::handle DfDv,
                  nb::handle DfDa, nb::handle DsDq, nb::handle DsDv, nb::handle DsDa,
                  nb::handle DmDq, bool actuation) {
  const Pair pair(model, data);
  const ModelView m = view_model(pair.model);
  DataView d = view_data(pair.data);
  const Py_ssize_t nv = m.nv, ns = m.nsensordata;
  Array fq(DfDq, "DfDq", {nv, nv}, true), fv(DfDv, "DfDv", {nv, nv}, true),
      fa(DfDa, "DfDa", {nv, nv}, true), sq(DsDq, "DsDq", {nv, ns}, true),
      sv(DsDv, "DsDv", {nv, ns}, true), sa(DsDa, "DsDa", {nv, ns}, true),
      mq(DmDq, "DmDq", {nv, m.nC}, true);
  require_apart({&fq, &fv, &fa, &sq, &sv, &sa, &mq});
  run(model, [&] {
    require_inverse(m, d);
    if (sq.data() || sv.data() || sa.data()) require_sensors(m);
    run_inverse(pair.model, pair.data, actuation);
    d = view_data(pair.data);
    thread_local Arena arena;
    arena.reset();
    inverse(m, d, actuation,
            {fq.data(), fv.data(), fa.data(), sq.data(), sv.data(), sa.data(), mq.data()}, arena);
  });
}

// With `may_refuse`, states without an exact derivative raise no error. Returns their indices.
std::vector<int> batch_into(nb::handle model, nb::handle states, nb::handle controls, int nstate,
                            int n, nb::handle A, nb::handle B, nb::handle C, nb::handle D,
                            int threads, bool may_refuse) {
  const void* mj_model = model_address(model);
  const ModelView m = view_model(mj_model);
  const Py_ssize_t nx = state_size(m), ns = m.nsensordata;
  Array s(states, "states", {n, nstate}, false), u(controls, "controls", {n, m.nu}, false),
      a(A, "A", {n, nx, nx}, true), b(B, "B", {n, nx, m.nu}, true), c(C, "C", {n, ns, nx}, true),
      dd(D, "D", {n, ns, m.nu}, true);
  std::optional<BatchFailure> failure;
  std::vector<int> refused;
  run([&] {
    try {
      require_model(m);
      if (c.data() || dd.data()) require_sensors(m);
    } catch (const Unsupported&) {
      if (!may_refuse) throw;
      refused.resize(n);
      std::iota(refused.begin(), refused.end(), 0);
      return;
    }
    const Outputs out{a.data(), b.data(), c.data(), dd.data(), nullptr, nullptr};
    auto differentiate = [&](const ModelView& at, const DataView& d, std::size_t k, Arena& arena) {
      transition(at, d, batch_item(at, out, k), arena);
    };
    failure = run_batch({mj_model, s.data(), nstate, u.data(), n}, differentiate, threads,
                        may_refuse ? &refused : nullptr);
  });
  if (failure) raise(failure->error, "state " + std::to_string(failure->index) + ": ");
  report_notices(model);
  return refused;
}

// Fills K and returns (rows, clamps, residual before, residual, solver error, collider error).
using Rows =
    std::vector<std::tuple<std::string, std::string, double, double, double, double, std::string>>;
using Clamps = std::vector<std::tuple<std::string, std::string, double>>;
std::tuple<Rows, Clamps, double, double, double, double, double> diagnose_into(nb::handle model,
                                                                               nb::handle data,
                                                                               nb::handle K,
                                                                               bool run_forward) {
  const Pair pair(model, data);
  const ModelView m = view_model(pair.model);
  DataView d = view_data(pair.data);
  Array k(K, "K", {m.nv, m.nv}, true);
  Diagnostics result{};
  run([&] {
    require_model(m);
    require_state(m, d);
    if (run_forward) forward(pair.model, pair.data);
    Arena arena;
    result = diagnose(m, view_data(pair.data), k.data(), arena);
  });
  Rows rows;
  Clamps clamps;
  for (const RowDiagnostic& r : result.rows) {
    rows.emplace_back(r.element, r.state, r.zone, r.activation, r.region, r.contact_error,
                      r.feature);
  }
  for (const ClampDiagnostic& c : result.clamps) {
    clamps.emplace_back(c.element, c.clamp, c.distance);
  }
  return {rows,
          clamps,
          result.residual_before,
          result.residual,
          result.solver_error,
          result.solver_limit,
          result.collider_error};
}

std::vector<std::pair<std::string, std::string>> unsupported(nb::handle model, int order,
                                                             const Parameters& parameters) {
  const ModelView m = view_model(model_address(model));
  std::vector<std::pair<std::string, std::string>> all;
  auto add = [&](const std::vector<Unsupported>& found) {
    for (const Unsupported& u : found) all.emplace_back(u.element, u.reason);
  };
  add(list_unsupported(m));
  if (order > 1) add(list_second_order(m));
  const std::vector<Parameter> list = read(m, parameters);
  add(list_parameters(m, view(list), order));
  return all;
}

// Returns the instruction sets beyond the architecture's baseline that the core was compiled for.
std::vector<std::string> processor_features() {
#ifdef __AVX2__
  return {"AVX2", "FMA"};
#else
  return {};
#endif
}

}  // namespace
}  // namespace mujacobian

// processor.cc defines the entry point PyInit__core, which calls the function that NB_MODULE
// defines
#define PyInit__core mujacobian_create_module

NB_MODULE(_core, module) {
  using namespace mujacobian;
  using nanobind::arg, nanobind::none;
  module.doc() = "Compiled core of mujacobian.";
  // graphs of PyTorch that exist at exit keep planners, which is no error of the user
  nanobind::set_leak_warnings(false);
  module.def("processor_features", &processor_features);
  module.def("version", [] { return std::string(MUJACOBIAN_VERSION); });
  module.def("fields", &list_fields);
  module.def("enumerators", &list_enumerators);
  module.def("symbols", &list_symbols);
  module.def("configure", &configure, arg("places"), arg("option_offset"), arg("contact_size"),
             arg("model_size"), arg("addresses"), arg("constants"), arg("model_type"),
             arg("data_type"), arg("error"), arg("unsupported_error"), arg("argument_error"),
             arg("argument_type_error"), arg("domain_error"), arg("require_data"), arg("notice"));
  module.def("linearize_into", &linearize_into, arg("model").none(), arg("data").none(),
             arg("A") = none(), arg("B") = none(), arg("C") = none(), arg("D") = none(),
             arg("Bf") = none(), arg("Df") = none(), arg("forward") = true, arg("control") = false,
             arg("passive") = false, arg("wanted") = Wanted(), arg("open_histories") = false);
  module.def("check_state", &check_state, arg("model").none(), arg("data").none(), arg("forward"));
  module.def("transition", &transition_into, arg("model").none(), arg("data").none(),
             arg("A") = none(), arg("B") = none(), arg("C") = none(), arg("D") = none(),
             nanobind::kw_only(), arg("forward") = true, arg("fallback") = none(), kTransitionDoc);
  module.def("inverse", &inverse_into, arg("model").none(), arg("data").none(),
             arg("DfDq") = none(), arg("DfDv") = none(), arg("DfDa") = none(), arg("DsDq") = none(),
             arg("DsDv") = none(), arg("DsDa") = none(), arg("DmDq") = none(), nanobind::kw_only(),
             arg("actuation") = false, kInverseDoc);
  module.def("batch_into", &batch_into, arg("model").none(), arg("states"), arg("controls"),
             arg("nstate"), arg("n"), arg("A"), arg("B"), arg("C").none(), arg("D").none(),
             arg("threads"), arg("may_refuse"));
  module.def("collider_limit", [] { return kColliderLimit; });
  module.def("slope_length", [] { return kSlopeLength; });
  module.def("contact_limit", [] { return kContactLimit; });
  module.def("converged_collider",
             [] { return std::pair(kColliderTolerance, collider_iterations()); });
  module.def("diagnose_into", &diagnose_into, arg("model").none(), arg("data").none(), arg("K"),
             arg("forward"));
  module.def("unsupported", &unsupported, arg("model").none(), arg("order"), arg("parameters"));
  bind_stop_flag(module);
  bind_adjoint(module);
  bind_stepper(module);
  bind_worlds(module);
  bind_ffi(module);
  bind_cost(module);
  bind_control(module);
  bind_rods(module);
  bind_second_order(module);
}

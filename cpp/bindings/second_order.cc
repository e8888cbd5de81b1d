#include "bindings/second_order.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <string>

#include "adjoint/curve.h"
#include "bindings/adjoint.h"
#include "bindings/errors.h"
#include "layout/engine.h"
#include "layout/text.h"
#include "second_order/product.h"
#include "step/batch.h"
#include "step/support.h"

namespace mujacobian {
namespace {

constexpr const char* kHessianDoc =
    R"(Write the exact second derivatives of one `mj_step` into arrays.

The result is that of `hessian`, but no memory is allocated.

Args:
  model: any model that MuJoCo loads.
  data: the state, controls and applied forces; the state is not changed.
  d_state: `(nx,)`, derivative of a scalar with respect to the next state.
  xx: `(nx, nx)`, derivatives with respect to the state twice. This array and the others are outputs
    of double precision; None leaves one out.
  xu: `(nx, nu)`, derivatives with respect to the state and the controls.
  uu: `(nu, nu)`, derivatives with respect to the controls twice.
  xf: `(nx, nv)`, derivatives with respect to the state and the applied forces.
  uf: `(nu, nv)`, derivatives with respect to the controls and the applied forces.
  ff: `(nv, nv)`, derivatives with respect to the applied forces twice.
  d_sensors: `(ns,)`, derivative of the scalar with respect to `sensordata`; None: zeros.
  forward: run `mj_forward` first. Use False if you have just called it on this state.

Example:
  >>> import mujoco, mujacobian, numpy as np
  >>> model = mujoco.MjModel.from_xml_string(
  ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
  ...     "</worldbody></mujoco>")
  >>> data, xx = mujoco.MjData(model), np.empty((2, 2))
  >>> mujacobian.hessian_into(model, data, np.array([0.0, 1.0]), xx)
  >>> bool((xx == mujacobian.hessian(model, data, [0, 1]).xx).all())
  True
)";

// Raises ArgumentError if a number is not finite.
void require_finite(const char* name, const double* x, Py_ssize_t n) {
  for (Py_ssize_t k = 0; x && k < n; k++) {
    if (std::isfinite(x[k])) continue;
    const std::string entry = std::string(name) + "[" + std::to_string(k) + "]";
    raise_argument(std::string(name) + " must be finite, but " + entry + " is " + in_words(x[k]));
  }
}

// Runs mj_forward if `run_forward` is set, then differentiate(m, d, arena).
template <class F>
void run_second_order(nb::handle model, const Pair& pair, bool run_forward, F differentiate) {
  run(model, [&] {
    const ModelView m = view_model(pair.model);
    require_model(m);
    require_state(m, view_data(pair.data));
    if (run_forward) forward(pair.model, pair.data);
    thread_local Arena arena;
    arena.reset();
    differentiate(m, view_data(pair.data), arena);
  });
}

// Writes the second derivatives of one step into the caller's arrays. None: not computed.
void hessian_into(nb::handle model, nb::handle data, nb::handle d_state, nb::handle xx,
                  nb::handle xu, nb::handle uu, nb::handle xf, nb::handle uf, nb::handle ff,
                  nb::handle d_sensors, bool run_forward) {
  const Pair pair(model, data);
  const ModelView m = view_model(pair.model);
  const Py_ssize_t nx = state_size(m), nu = m.nu, nv = m.nv;
  Array next(d_state, "d_state", {nx}, false),
      sensors(d_sensors, "d_sensors", {m.nsensordata}, false), state(xx, "xx", {nx, nx}, true),
      mixed(xu, "xu", {nx, nu}, true), ctrl(uu, "uu", {nu, nu}, true),
      state_force(xf, "xf", {nx, nv}, true), ctrl_force(uf, "uf", {nu, nv}, true),
      force(ff, "ff", {nv, nv}, true);
  require_apart({&state, &mixed, &ctrl, &state_force, &ctrl_force, &force});
  if (!next.data()) raise_argument_type("d_state must be an array of numbers, got None");
  require_finite("d_state", next.data(), nx);
  require_finite("d_sensors", sensors.data(), m.nsensordata);
  const HessianOutputs out{state.data(),       mixed.data(),      ctrl.data(),
                           state_force.data(), ctrl_force.data(), force.data()};
  run_second_order(model, pair, run_forward,
                   [&](const ModelView& at, const DataView& d, Arena& arena) {
                     hessian(at, d, {next.data(), sensors.data()}, out, arena);
                   });
}

// Writes the second derivatives of many steps. The arrays have a leading axis of length n.
void hessian_batch_into(nb::handle model, nb::handle states, nb::handle controls, int nstate, int n,
                        nb::handle d_states, nb::handle d_sensors, nb::handle xx, nb::handle xu,
                        nb::handle uu, int threads) {
  const void* mj_model = model_address(model);
  const ModelView m = view_model(mj_model);
  const Py_ssize_t nx = state_size(m), nu = m.nu, ns = m.nsensordata;
  Array s(states, "states", {n, nstate}, false), u(controls, "controls", {n, nu}, false),
      next(d_states, "d_states", {n, nx}, false), sensors(d_sensors, "d_sensors", {n, ns}, false),
      state(xx, "xx", {n, nx, nx}, true), mixed(xu, "xu", {n, nx, nu}, true),
      ctrl(uu, "uu", {n, nu, nu}, true);
  const HessianOutputs out{state.data(), mixed.data(), ctrl.data(), nullptr, nullptr, nullptr};
  std::optional<BatchFailure> failure;
  run([&] {
    require_model(m);
    auto differentiate = [&](const ModelView& at, const DataView& d, std::size_t k, Arena& arena) {
      const double* sensed = sensors.data() ? sensors.data() + k * ns : nullptr;
      hessian(at, d, {next.data() + k * nx, sensed}, batch_item(at, out, k), arena);
    };
    failure = run_batch({mj_model, s.data(), nstate, u.data(), n}, differentiate, threads);
  });
  if (failure) raise(failure->error, "state " + std::to_string(failure->index) + ": ");
  report_notices(model);
}

// Writes the product of the Hessian of one step with a direction.
void hvp_into(nb::handle model, nb::handle data, nb::handle d_state, nb::handle d_sensors,
              nb::handle state, nb::handle ctrl, const Parameters& parameters, nb::handle params,
              nb::handle of_state, nb::handle of_ctrl, nb::handle first_params,
              nb::handle of_params, bool run_forward) {
  const Pair pair(model, data);
  const ModelView m = view_model(pair.model);
  const Py_ssize_t nx = state_size(m), nu = m.nu, width = parameters.size();
  Array next(d_state, "d_state", {nx}, false),
      sensors(d_sensors, "d_sensors", {m.nsensordata}, false), dx(state, "dx", {nx}, false),
      du(ctrl, "du", {nu}, false), x(of_state, "state", {nx}, true),
      u(of_ctrl, "controls", {nu}, true), dp(params, "d_params", {width}, false),
      g(first_params, "first_params", {width}, true), p(of_params, "params", {width}, true);
  const std::vector<Parameter> list = read(m, parameters);
  const CurvedParameters curved = curved_parameters(view(list), dp.data(), g.data(), p.data());
  run_second_order(
      model, pair, run_forward, [&](const ModelView& at, const DataView& d, Arena& arena) {
        if (width) require_curved(at, view(list), sensors.data());
        pull_back_twice(at, d, {next.data(), sensors.data()}, nullptr,
                        {dx.data(), du.data(), nullptr}, {}, {x.data(), u.data(), nullptr},
                        width ? &curved : nullptr, arena);
      });
}

}  // namespace

void bind_second_order(nb::module_& module) {
  using nb::arg, nb::none;
  module.def("hessian_into", &hessian_into, arg("model").none(), arg("data").none(),
             arg("d_state").none(), arg("xx") = none(), arg("xu") = none(), arg("uu") = none(),
             arg("xf") = none(), arg("uf") = none(), arg("ff") = none(), nb::kw_only(),
             arg("d_sensors") = none(), arg("forward") = true, kHessianDoc);
  module.def("hessian_batch_into", &hessian_batch_into, arg("model").none(), arg("states"),
             arg("controls"), arg("nstate"), arg("n"), arg("d_states"), arg("d_sensors").none(),
             arg("xx"), arg("xu"), arg("uu"), arg("threads"));
  module.def("hvp_into", &hvp_into, arg("model").none(), arg("data").none(), arg("d_state"),
             arg("d_sensors").none(), arg("dx"), arg("du"), arg("parameters"), arg("d_params"),
             arg("state"), arg("controls"), arg("first_params"), arg("params"), arg("forward"));
}

}  // namespace mujacobian

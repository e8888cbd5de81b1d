#include "bindings/second_order.h"

#include <cmath>
#include <string>

#include "bindings/errors.h"
#include "layout/engine.h"
#include "layout/text.h"
#include "second_order/hessian.h"
#include "second_order/support.h"
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
  d_sensors: `(ns,)`, derivative of the scalar with respect to `sensordata`: None, or zeros.
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

// Writes the second derivatives of one step into the caller's arrays. None: not computed.
void hessian_into(nb::handle model, nb::handle data, nb::handle d_state, nb::handle xx,
                  nb::handle xu, nb::handle uu, nb::handle xf, nb::handle uf, nb::handle ff,
                  nb::handle d_sensors, bool run_forward) {
  const Pair pair(model, data);
  const ModelView m = view_model(pair.model);
  DataView d = view_data(pair.data);
  const Py_ssize_t nx = state_size(m), nu = m.nu, nv = m.nv;
  Array next(d_state, "d_state", {nx}, false),
      sensors(d_sensors, "d_sensors", {m.nsensordata}, false), state(xx, "xx", {nx, nx}, true),
      mixed(xu, "xu", {nx, nu}, true), ctrl(uu, "uu", {nu, nu}, true),
      state_force(xf, "xf", {nx, nv}, true), ctrl_force(uf, "uf", {nu, nv}, true),
      force(ff, "ff", {nv, nv}, true);
  if (!next.data()) raise_argument_type("d_state must be an array of numbers, got None");
  require_finite("d_state", next.data(), nx);
  require_finite("d_sensors", sensors.data(), m.nsensordata);
  run(model, [&] {
    require_model(m);
    if (sensors.data()) require_no_sensors(m, sensors.data());
    require_state(m, d);
    if (run_forward) {
      forward(pair.model, pair.data);
      d = view_data(pair.data);
    }
    thread_local Arena arena;
    arena.reset();
    hessian(m, d, next.data(),
            {state.data(), mixed.data(), ctrl.data(), state_force.data(), ctrl_force.data(),
             force.data()},
            arena);
  });
}

}  // namespace

void bind_second_order(nb::module_& module) {
  using nb::arg, nb::none;
  module.def("hessian_into", &hessian_into, arg("model").none(), arg("data").none(),
             arg("d_state").none(), arg("xx") = none(), arg("xu") = none(), arg("uu") = none(),
             arg("xf") = none(), arg("uf") = none(), arg("ff") = none(), nb::kw_only(),
             arg("d_sensors") = none(), arg("forward") = true, kHessianDoc);
}

}  // namespace mujacobian

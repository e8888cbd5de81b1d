// Binding of batches of rollouts whose memory lasts from call to call.
#pragma once

#include <memory>

#include "adjoint/stepper.h"
#include "bindings/arguments.h"

namespace mujacobian {

// A stepper of a mujoco.MjModel, which it does not keep alive.
struct StepperObject {
  std::shared_ptr<Stepper> core;

  explicit StepperObject(nb::handle model)
      : core(std::make_shared<Stepper>(model_address(model))) {}

  // Raises if this is not the model of the stepper.
  void require(nb::handle model) const {
    if (model_address(model) != core->model()) {
      raise_argument("model must be the one that the stepper was made for");
    }
  }
};

void bind_stepper(nanobind::module_& module);

}  // namespace mujacobian

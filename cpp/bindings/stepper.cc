#include "bindings/stepper.h"

#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "bindings/errors.h"
#include "step/pool.h"

namespace mujacobian {
namespace {

// A tape that returns to its stepper.
struct TapeObject {
  std::shared_ptr<Stepper> owner;
  std::unique_ptr<Tape> core;

  TapeObject(std::shared_ptr<Stepper> stepper, std::unique_ptr<Tape> tape)
      : owner(std::move(stepper)), core(std::move(tape)) {}
  TapeObject(const TapeObject&) = delete;
  TapeObject& operator=(const TapeObject&) = delete;
  ~TapeObject() { owner->give_back(std::move(core)); }
};

// Runs f() without the interpreter lock. Returns its result, and false if it throws anything but an
// interrupt. Then Python repeats the work and raises the error in full.
template <class F>
bool attempt(nb::handle model, F f) {
  bool good = false;
  run([&] {
    try {
      good = f();
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception&) {
      good = false;
    }
  });
  if (good) {
    report_notices(model);
  } else {
    take_notices();
    PyErr_Clear();  // a Python callback may have raised inside of MuJoCo
  }
  return good;
}

// The address of the first number of a contiguous array; 0 stands for null. Python has checked the
// array, because a check here would take as long as a step of a small robot.
using Address = std::uintptr_t;
double* at(Address address) { return reinterpret_cast<double*>(address); }

bool simulate_batch(StepperObject& self, nb::handle model, int n, int steps, int threads,
                    Address first, Address state, Address ctrl, Address force, Address wrench,
                    Address mocap, Address states, Address sensors, Address kept, TapeObject* tape,
                    bool forces) {
  self.require(model);
  return attempt(model, [&] {
    return self.core->simulate(
        {n, steps, at(first), at(state), at(ctrl), at(force), at(wrench), at(mocap)},
        {at(states), at(sensors), at(kept)}, tape ? tape->core.get() : nullptr, forces, threads);
  });
}

bool pull_back_batch(StepperObject& self, nb::handle model, int n, int steps, int threads,
                     Address poses, Address states, Address kept, Address d_states,
                     Address d_sensors, Address state, Address ctrl, Address force, Address wrench,
                     Address mocap, const TapeObject* tape) {
  self.require(model);
  return attempt(model, [&] {
    return self.core->pull_back({n, steps, nullptr, nullptr, nullptr, nullptr, nullptr, at(poses)},
                                at(states), at(kept), {at(d_states), at(d_sensors)},
                                {at(state), at(ctrl), at(force), at(wrench), at(mocap)},
                                tape ? tape->core.get() : nullptr, threads);
  });
}

bool push_batch(StepperObject& self, nb::handle model, int n, int steps, int threads,
                Address states, Address kept, Address moved, Address moved_ctrl, Address d_states,
                Address d_sensors) {
  self.require(model);
  return attempt(model, [&] {
    return self.core->push({n, steps, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
                           at(states), at(kept), at(moved), at(moved_ctrl), at(d_states),
                           at(d_sensors), threads);
  });
}

}  // namespace

void bind_stepper(nb::module_& module) {
  using nb::arg;
  module.def("forget_threads", &forget_threads);
  nb::class_<TapeObject>(module, "Tape");
  nb::class_<StepperObject>(module, "Stepper")
      .def(nb::init<nb::handle>(), arg("model"))
      .def(
          "tape",
          [](StepperObject& self, int n, int steps) -> std::unique_ptr<TapeObject> {
            std::unique_ptr<Tape> tape = self.core->take_tape(n, steps);
            if (!tape) return nullptr;
            return std::make_unique<TapeObject>(self.core, std::move(tape));
          },
          arg("n"), arg("steps"))
      .def("simulate", &simulate_batch, arg("model"), arg("n"), arg("steps"), arg("threads"),
           arg("first"), arg("state"), arg("ctrl"), arg("force"), arg("wrench"), arg("mocap"),
           arg("states"), arg("sensors"), arg("kept"), arg("tape").none(), arg("forces"))
      .def("pull_back", &pull_back_batch, arg("model"), arg("n"), arg("steps"), arg("threads"),
           arg("poses"), arg("states"), arg("kept"), arg("d_states"), arg("d_sensors"),
           arg("state"), arg("ctrl"), arg("force"), arg("wrench"), arg("mocap"), arg("tape").none())
      .def("push", &push_batch, arg("model"), arg("n"), arg("steps"), arg("threads"), arg("states"),
           arg("kept"), arg("moved"), arg("moved_ctrl"), arg("d_states"), arg("d_sensors"));
}

}  // namespace mujacobian

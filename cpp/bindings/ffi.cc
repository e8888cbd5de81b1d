#include "bindings/ffi.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/errors.h"
#include "bindings/xla.h"
#include "layout/interrupt.h"

namespace mujacobian {
namespace {

// The minor version of XLA's interface that the handlers report.
std::atomic<int> reported_minor{xla::kLastMinor};

// The steppers by the tokens in compiled programs. Tokens are random numbers, so that a program of
// another process does not find the wrong model.
struct Registry {
  std::mutex mutex;
  std::map<std::int64_t, std::shared_ptr<Stepper>> steppers;
};

Registry& registry() {
  static Registry* all = new Registry;
  return *all;
}

std::shared_ptr<Stepper> find(std::int64_t token) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().steppers.find(token);
  return found == registry().steppers.end() ? nullptr : found->second;
}

// A call of a handler.
class Call {
 public:
  explicit Call(const xla::Frame& frame)
      : frame_(frame), token(number("token")), mask(number("mask")), threads(number("threads")) {
    for (auto* buffers : {&frame.arguments, &frame.results}) {
      for (std::int64_t k = 0; k < buffers->count; k++) {
        if (buffers->items[k]->type != xla::kFloat64) throw std::runtime_error("not float64");
      }
    }
  }

  double* argument(int k) const { return static_cast<double*>(frame_.arguments.items[k]->data); }
  double* result(int k) const { return static_cast<double*>(frame_.results.items[k]->data); }
  bool has(int bit) const { return mask & (std::int64_t(1) << bit); }

  // Sets n and T from states of shape (..., T + 1, size).
  void measure(const xla::Buffer& states, int& n, int& T) const {
    std::int64_t count = 1;
    for (std::int64_t k = 0; k + 2 < states.rank; k++) count *= states.shape[k];
    n = static_cast<int>(count), T = static_cast<int>(states.shape[states.rank - 2]) - 1;
  }

  // (address, shape) of all buffers, for Python.
  static nb::list describe(const xla::Buffers& buffers) {
    nb::list all;
    for (std::int64_t k = 0; k < buffers.count; k++) {
      const xla::Buffer& buffer = *buffers.items[k];
      nb::list shape;
      for (std::int64_t i = 0; i < buffer.rank; i++) shape.append(buffer.shape[i]);
      all.append(nb::make_tuple(reinterpret_cast<std::uintptr_t>(buffer.data), shape));
    }
    return all;
  }

 private:
  std::int64_t number(std::string_view name) const {
    const xla::Attributes& all = frame_.attributes;
    for (std::int64_t k = 0; k < all.count; k++) {
      if (std::string_view(all.names[k]->data, all.names[k]->size) != name) continue;
      const auto* scalar = static_cast<const xla::Scalar*>(all.values[k]);
      if (all.types[k] != xla::kScalar || scalar->type != xla::kInt64) break;
      return *static_cast<const std::int64_t*>(scalar->value);
    }
    throw std::runtime_error("missing attribute " + std::string(name));
  }

  const xla::Frame& frame_;

 public:
  const std::int64_t token, mask, threads;
};

constexpr int kInputs = 5;  // state, controls, forces, wrenches, mocap: the bits of the mask

// Arguments: the inputs in the mask. Results: states, sensordata, kept rows.
bool simulate(Stepper& stepper, const Call& call, const xla::Frame& frame) {
  const double* given[kInputs] = {};
  int next = 0;
  for (int k = 0; k < kInputs; k++) {
    if (call.has(k)) given[k] = call.argument(next++);
  }
  int n, T;
  call.measure(*frame.results.items[0], n, T);
  return stepper.simulate({n, T, nullptr, given[0], given[1], given[2], given[3], given[4]},
                          {call.result(0), call.result(1), call.result(2)}, nullptr, false,
                          call.threads);
}

// Arguments: states, kept rows, derivatives by states and by sensors, then the mocap poses if their
// gradient is wanted. Results: the gradients in the mask.
bool pull_back(Stepper& stepper, const Call& call, const xla::Frame& frame) {
  double* made[kInputs] = {};
  int next = 0;
  for (int k = 0; k < kInputs; k++) {
    if (call.has(k)) made[k] = call.result(next++);
  }
  int n, T;
  call.measure(*frame.arguments.items[0], n, T);
  const double* poses = made[4] ? call.argument(4) : nullptr;
  return stepper.pull_back({n, T, nullptr, nullptr, nullptr, nullptr, nullptr, poses},
                           call.argument(0), call.argument(1), {call.argument(2), call.argument(3)},
                           {made[0], made[1], made[2], made[3], made[4]}, nullptr, call.threads);
}

// Arguments: states, kept rows, then the changes in the mask, of the state and of the controls.
// Results: changes of states and of sensordata.
bool push(Stepper& stepper, const Call& call, const xla::Frame& frame) {
  const double* moved[2] = {};
  int next = 2;
  for (int k = 0; k < 2; k++) {
    if (call.has(k)) moved[k] = call.argument(next++);
  }
  int n, T;
  call.measure(*frame.arguments.items[0], n, T);
  return stepper.push({n, T, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
                      call.argument(0), call.argument(1), moved[0], moved[1], call.result(0),
                      call.result(1), call.threads);
}

// Repeats a call that did not succeed through Python, which raises its error. Returns the text of
// the error, or an empty text if Python succeeded.
std::string repeat(const char* kind, const Call& call, const xla::Frame& frame) {
  try {
    PyErr_Clear();  // a Python callback may have raised inside of MuJoCo
    python_types().repeat(kind, call.token, call.mask, Call::describe(frame.arguments),
                          Call::describe(frame.results));
    return {};
  } catch (nb::python_error& error) {
    return nb::cast<std::string>(nb::str(error.type().attr("__qualname__"))) + ": " +
           nb::cast<std::string>(nb::str(error.value()));
  }
}

// Runs a call in the core. The interpreter lock is needed only for warnings and errors.
template <class F>
std::string execute(const char* kind, F work, const xla::Frame& frame) {
  const Call call(frame);
  const std::shared_ptr<Stepper> stepper = find(call.token);
  bool good = false, interrupted = false;
  if (!notices().is_empty()) take_notices();  // of an earlier call that failed
  try {
    const Interruptible scope(is_interrupted);
    good = stepper && work(*stepper, call, frame);
  } catch (const Interrupted&) {
    interrupted = true;
  } catch (const std::exception&) {
    good = false;
  }
  if (good && notices().is_empty()) return {};
  const nb::gil_scoped_acquire lock;
  if (interrupted) {
    PyErr_Clear();
    PyErr_SetInterrupt();  // the main thread raises KeyboardInterrupt when it is back in Python
    return "KeyboardInterrupt";
  }
  if (!good) {
    take_notices();
    return repeat(kind, call, frame);
  }
  try {
    report_notices(python_types().model_of(call.token));
    return {};
  } catch (nb::python_error& error) {  // a filter of `warnings` makes it an error
    return error.what();
  }
}

// Describes the handler if XLA asks for it. Returns whether it did.
bool answer_metadata(const xla::Frame& frame) {
  xla::Extension* first = frame.extensions;
  if (!first || first->type != xla::kMetadata) return false;
  xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(first)->metadata;
  metadata.version.major = xla::kMajor;
  metadata.version.minor = reported_minor;
  metadata.traits = 0;
  return true;
}

template <class F>
xla::Error* handle(const char* kind, F work, xla::Frame* frame) {
  if (answer_metadata(*frame)) return nullptr;
  std::string problem;
  try {
    problem = execute(kind, work, *frame);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (problem.empty()) return nullptr;
  xla::ErrorArguments arguments{sizeof(xla::ErrorArguments), nullptr, problem.c_str(),
                                xla::kInternal};
  return frame->api->create_error(&arguments);
}

xla::Error* handle_simulate(xla::Frame* frame) { return handle("simulate", simulate, frame); }
xla::Error* handle_pull_back(xla::Frame* frame) { return handle("pull_back", pull_back, frame); }
xla::Error* handle_push(xla::Frame* frame) { return handle("push", push, frame); }

nb::capsule capsule(xla::Handler* handler) { return nb::capsule(reinterpret_cast<void*>(handler)); }

}  // namespace

void bind_ffi(nb::module_& module) {
  using nb::arg;
  module.def("ffi_versions", [] { return std::pair(xla::kFirstMinor, xla::kLastMinor); });
  // Returns the handlers by name. They report this minor version of XLA's interface.
  module.def(
      "ffi_handlers",
      [](int minor, nb::object repeat_call, nb::object model_of) {
        reported_minor = minor;
        python_types().repeat = std::move(repeat_call);
        python_types().model_of = std::move(model_of);
        return std::map<std::string, nb::object>{{"simulate", capsule(handle_simulate)},
                                                 {"pull_back", capsule(handle_pull_back)},
                                                 {"push", capsule(handle_push)}};
      },
      arg("minor"), arg("repeat"), arg("model_of"));
  module.def(
      "ffi_register",
      [](std::int64_t token, const StepperObject& stepper) {
        const std::lock_guard lock(registry().mutex);
        registry().steppers[token] = stepper.core;
      },
      arg("token"), arg("stepper"));
  module.def(
      "ffi_unregister",
      [](std::int64_t token) {
        const std::lock_guard lock(registry().mutex);
        registry().steppers.erase(token);
      },
      arg("token"));
}

}  // namespace mujacobian

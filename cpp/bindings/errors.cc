#include "bindings/errors.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <cmath>
#include <stdexcept>

#include "layout/engine.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// Returns the exception that a Python callback raised inside of MuJoCo on this thread, and clears
// it. Null: none.
nb::object take_raised() {
#if PY_VERSION_HEX >= 0x030C0000
  return nb::steal(PyErr_GetRaisedException());
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!type) return {};
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return nb::steal(value);
#endif
}

// Sets a Python error with a cause. A cause that is not an error, such as KeyboardInterrupt, is set
// itself.
void set_error(nb::handle type, const std::string& message, const nb::object& cause) {
  if (cause.is_valid() && !PyErr_GivenExceptionMatches(cause.ptr(), PyExc_Exception)) {
    PyErr_SetObject(cause.type().ptr(), cause.ptr());
    return;
  }
  nb::object error = type(message);
  if (cause.is_valid()) PyException_SetCause(error.ptr(), cause.inc_ref().ptr());
  PyErr_SetObject(type.ptr(), error.ptr());
}

struct StopFlag {
  std::atomic<bool> is_set{false};
};

// The flag that can stop this thread.
const StopFlag*& current_flag() {
  thread_local const StopFlag* mine = nullptr;
  return mine;
}

}  // namespace

void raise(std::exception_ptr error, const std::string& where) {
  const PythonTypes& types = python_types();
  try {
    std::rethrow_exception(error);
  } catch (const Interrupted&) {
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const Unsupported& u) {
    nb::object type = types.unsupported_error;
    const nb::object sensor = u.sensor < 0 ? nb::none() : nb::object(nb::int_(u.sensor));
    PyErr_SetObject(type.ptr(), type(where + u.element, u.reason, sensor).ptr());
  } catch (const EngineError& e) {
    set_error(types.error, where + "MuJoCo stopped with an error: " + e.what(), take_raised());
  } catch (const std::domain_error& e) {
    PyErr_SetString(types.domain_error.ptr(), (where + e.what()).c_str());
  } catch (const std::invalid_argument& e) {
    raise_argument(where + e.what());
  } catch (const std::runtime_error& e) {
    PyErr_SetString(types.error.ptr(), (where + e.what()).c_str());
  }
  throw nb::python_error();
}

void report_notices(nb::handle model) {
  if (notices().is_empty()) return;
  Notices found = take_notices();
  found.keep_worse(Notices::kContact, Notices::kCollider);
  // the remedy is that of the largest excess, but slopes are named only if nothing else is
  const double excess =
      std::fmax(found.excess(Notices::kSlope),
                std::fmax(found.excess(Notices::kContact), found.excess(Notices::kCollider)));
  if (found.has(Notices::kContact) || found.has(Notices::kCollider)) found.drop(Notices::kSlope);
  constexpr const char* kNames[Notices::kCount] = {"solver", "contact", "collider", "slope"};
  for (int k = 0; k < Notices::kCount; k++) {
    if (!found.has(k)) continue;
    const Notice& n = found[k];
    python_types().notice(model, kNames[k], n.value, n.limit, n.element[0], n.element[1], excess);
  }
}

bool is_interrupted() {
  if (const StopFlag* flag = current_flag(); flag && flag->is_set) return true;
  nb::gil_scoped_acquire lock;
  return PyErr_CheckSignals() != 0;
}

void bind_stop_flag(nb::module_& module) {
  module.def("poll_interrupt", [] {
    if (is_interrupted()) raise(std::make_exception_ptr(Interrupted()));
  });
  nb::class_<StopFlag>(module, "StopFlag")
      .def(nb::init<>())
      .def("set", [](StopFlag& self) { self.is_set = true; })
      .def("__enter__", [](const StopFlag& self) { current_flag() = &self; })
      .def(
          "__exit__",
          [](const StopFlag&, nb::handle, nb::handle, nb::handle) { current_flag() = nullptr; },
          nb::arg("type").none(), nb::arg("error").none(), nb::arg("traceback").none());
}

}  // namespace mujacobian

#include "bindings/errors.h"

#include <nanobind/stl/string.h>

#include "layout/engine.h"
#include "smooth/unsupported.h"

namespace mujacobian {

void raise(std::exception_ptr error, const std::string& where) {
  try {
    std::rethrow_exception(error);
  } catch (const Unsupported& u) {
    nb::object type = python_types().unsupported_error;
    PyErr_SetObject(type.ptr(), type(where + u.element, u.reason).ptr());
  } catch (const EngineError& e) {
    std::string message = where + "MuJoCo stopped with an error: " + e.what();
    PyErr_SetString(python_types().error.ptr(), message.c_str());
  } catch (const std::domain_error& e) {
    PyErr_SetString(PyExc_ValueError, (where + e.what()).c_str());
  }
  throw nb::python_error();
}

void report_notices(nb::handle model) {
  const Notices found = take_notices();
  constexpr const char* kNames[Notices::kCount] = {"solver", "collider"};
  for (int k = 0; k < Notices::kCount; k++) {
    if (!found.has(k)) continue;
    const Notice& n = found[k];
    python_types().notice(model, kNames[k], n.value, n.limit, n.element[0], n.element[1]);
  }
}

void require_pair(const ModelView& m, const DataView& d) {
  if (m.signature == d.signature) return;
  throw nb::value_error("model and data do not belong together: data was made from another model");
}

}  // namespace mujacobian

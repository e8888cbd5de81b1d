#include "bindings/arguments.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace mujacobian {
namespace {

std::string class_name(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

// The last object asked for and its address, which is constant while the object lives: asking
// MuJoCo's binding takes as long as the derivative of a small arm.
struct Known {
  PyObject* weak = nullptr;
  void* address = nullptr;

  bool is(nb::handle object) const {
    if (!weak) return false;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* alive = nullptr;
    if (PyWeakref_GetRef(weak, &alive) < 1) return false;
    Py_DECREF(alive);
    return alive == object.ptr();
#else
    return PyWeakref_GetObject(weak) == object.ptr();
#endif
  }
};

void* address(nb::handle object, Known& known, const nb::object& type, const char* name,
              const char* expected) {
  if (known.is(object)) return known.address;
  if (!nb::isinstance(object, type)) {
    throw nb::type_error(
        (std::string(name) + " must be a " + expected + ", got " + class_name(object)).c_str());
  }
  known.address = PyLong_AsVoidPtr(nb::object(object.attr("_address")).ptr());
  Py_XDECREF(known.weak);
  known.weak = PyWeakref_NewRef(object.ptr(), nullptr);
  if (!known.weak || PyErr_Occurred()) throw nb::python_error();
  return known.address;
}

std::string describe(const Py_ssize_t* shape, std::size_t ndim) {
  std::string text = "(";
  for (std::size_t k = 0; k < ndim; k++) text += (k ? ", " : "") + std::to_string(shape[k]);
  return text + (ndim == 1 ? ",)" : ")");
}

std::string wanted(const char* name, std::initializer_list<Py_ssize_t> shape) {
  return std::string(name) + " must be a C-contiguous float64 array of shape " +
         describe(shape.begin(), shape.size()) + ", got ";
}

}  // namespace

PythonTypes& python_types() {
  // never destroyed: the interpreter is gone by then
  static PythonTypes* types = new PythonTypes;
  return *types;
}

void* model_address(nb::handle model) {
  static Known known;
  return address(model, known, python_types().model, "model", "mujoco.MjModel");
}

void* data_address(nb::handle data) {
  static Known known;
  return address(data, known, python_types().data, "data", "mujoco.MjData");
}

Array::Array(nb::handle object, const char* name, std::initializer_list<Py_ssize_t> shape,
             bool writable) {
  if (object.is_none()) return;
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_FULL_RO)) {
    PyErr_Clear();
    throw nb::type_error((wanted(name, shape) + class_name(object)).c_str());
  }
  held_ = true;
  std::string problem;
  if (!buffer_.format || std::strcmp(buffer_.format, "d")) {
    problem = "elements of format '" + std::string(buffer_.format ? buffer_.format : "B") + "'";
  } else if (!std::equal(shape.begin(), shape.end(), buffer_.shape, buffer_.shape + buffer_.ndim)) {
    problem = "shape " + describe(buffer_.shape, buffer_.ndim);
  } else if (buffer_.len && !PyBuffer_IsContiguous(&buffer_, 'C')) {
    problem = "one that is not contiguous";
  } else if (writable && buffer_.readonly) {
    problem = "one that is read-only";
  }
  if (!problem.empty()) {
    PyBuffer_Release(&buffer_);
    throw nb::value_error((wanted(name, shape) + problem).c_str());
  }
}

Array::~Array() {
  if (held_) PyBuffer_Release(&buffer_);
}

}  // namespace mujacobian

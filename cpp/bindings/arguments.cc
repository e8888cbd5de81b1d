#include "bindings/arguments.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace mujacobian {
namespace {

std::string class_name(nb::handle object) { return Py_TYPE(object.ptr())->tp_name; }

void* address(nb::handle object, const nb::object& type, const char* name, const char* expected) {
  if (!type.is(object.type()) && !nb::isinstance(object, type)) {
    throw nb::type_error((std::string(name) + " must be a " + expected + ", got " +
                          class_name(object)).c_str());
  }
  static PyObject* const attribute = PyUnicode_InternFromString("_address");
  nb::object value = nb::steal(PyObject_GetAttr(object.ptr(), attribute));
  if (!value.is_valid()) throw nb::python_error();
  void* result = PyLong_AsVoidPtr(value.ptr());
  if (!result && PyErr_Occurred()) throw nb::python_error();
  return result;
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
  return address(model, python_types().model, "model", "mujoco.MjModel");
}

void* data_address(nb::handle data) {
  return address(data, python_types().data, "data", "mujoco.MjData");
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

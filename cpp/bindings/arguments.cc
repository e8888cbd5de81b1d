#include "bindings/arguments.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace mujacobian {
namespace {

std::string class_name(nb::handle object) { return nb::inst_name(object).c_str(); }

// The object of the last call and its address, which is constant while the object lives. A call of
// MuJoCo's binding for the address takes as long as the derivative of a small arm.
struct Known {
  PyObject* weak = nullptr;
  void* address = nullptr;

  bool is(nb::handle object) const {
    if (!weak || object.is_none()) return false;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* referent;  // null if the object is dead
    if (PyWeakref_GetRef(weak, &referent) < 0) throw nb::python_error();
    return nb::steal(referent).is(object);
#else
    return PyWeakref_GetObject(weak) == object.ptr();  // None if the object is dead
#endif
  }
};

void learn(nb::handle object, Known& known, const nb::object& type, const char* name,
           const char* expected) {
  if (!nb::isinstance(object, type)) {
    raise_argument_type(std::string(name) + " must be a " + expected + ", got " +
                        class_name(object));
  }
  known.address = PyLong_AsVoidPtr(nb::object(object.attr("_address")).ptr());
  Py_XDECREF(known.weak);
  known.weak = PyWeakref_NewRef(object.ptr(), nullptr);
  if (!known.weak || PyErr_Occurred()) throw nb::python_error();
}

// Returns the C struct of a mujoco.MjData, and raises if it does not belong to the model, whose C
// struct is at `model_struct`.
void* data_of(nb::handle model, const void* model_struct, nb::handle data) {
  static Known known;
  static const void* owner = nullptr;  // the model of the known data
  if (!known.is(data)) {
    learn(data, known, python_types().data, "data", "mujoco.MjData");
    owner = PyLong_AsVoidPtr(nb::object(data.attr("model").attr("_address")).ptr());
  }
  void* const found = known.address;
  if (owner != model_struct) python_types().require_data("data", model, data);
  return found;
}

// The objects that calls are using, protected by the interpreter lock.
struct Use {
  const void* object;
  std::thread::id thread;
};
std::vector<Use>& uses() {
  static std::vector<Use> all;
  return all;
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
  // never destroyed, because the interpreter ends before static objects are destroyed
  static PythonTypes* types = new PythonTypes;
  return *types;
}

void* model_address(nb::handle model) {
  static Known known;
  if (!known.is(model)) learn(model, known, python_types().model, "model", "mujoco.MjModel");
  return known.address;
}

void raise_argument(const std::string& message) {
  PyErr_SetString(python_types().argument_error.ptr(), message.c_str());
  throw nb::python_error();
}

void raise_argument_type(const std::string& message) {
  PyErr_SetString(python_types().argument_type_error.ptr(), message.c_str());
  throw nb::python_error();
}

InUse::InUse(const void* object, const char* name) : object_(object) {
  const std::thread::id here = std::this_thread::get_id();
  for (const Use& use : uses()) {
    if (use.object != object || use.thread == here) continue;
    raise_argument(std::string(name) + " is in use by another thread: give each thread its own");
  }
  uses().push_back({object, here});
}

InUse::~InUse() {
  std::vector<Use>& all = uses();
  const auto is_this = [this](const Use& use) { return use.object == object_; };
  all.erase(std::find_if(all.begin(), all.end(), is_this));
}

Pair::Pair(nb::handle model_object, nb::handle data_object)
    : model(model_address(model_object)),
      data(data_of(model_object, model, data_object)),
      in_use(data, "data") {}

Array::Array(nb::handle object, const char* name, std::initializer_list<Py_ssize_t> shape,
             bool writable)
    : name_(name) {
  if (object.is_none()) return;
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_FULL_RO)) {
    PyErr_Clear();
    raise_argument_type(wanted(name, shape) + class_name(object));
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
    raise_argument(wanted(name, shape) + problem);
  }
}

Array::~Array() {
  if (held_) PyBuffer_Release(&buffer_);
}

void require_apart(std::initializer_list<const Array*> outputs) {
  for (auto b = outputs.begin(); b != outputs.end(); ++b) {
    for (auto a = outputs.begin(); a != b; ++a) {
      const bool shared = (*a)->data() < (*b)->end() && (*b)->data() < (*a)->end();
      if (!shared) continue;
      raise_argument(std::string((*a)->name()) + " and " + (*b)->name() +
                     " must be separate arrays, got two that share memory");
    }
  }
}

}  // namespace mujacobian

// Arguments from Python: MuJoCo's objects and arrays. Errors contain the name of the argument.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>
#include <string>

namespace mujacobian {

namespace nb = nanobind;

// Python objects that the bindings use. `configure` sets them at import.
struct PythonTypes {
  nb::object model, data;               // mujoco.MjModel, mujoco.MjData
  nb::object error, unsupported_error;  // MujacobianError, UnsupportedFeatureError
  nb::object argument_error, argument_type_error, domain_error;  // of mujacobian.errors
  nb::object require_data;                                       // of mujacobian._arguments
  nb::object notice;                                             // of mujacobian._notices
  nb::object repeat{}, model_of{};  // of mujacobian._handle, if JAX is used
};
PythonTypes& python_types();

// Raise ArgumentError and ArgumentTypeError.
[[noreturn]] void raise_argument(const std::string& message);
[[noreturn]] void raise_argument_type(const std::string& message);

// Returns the address of the C struct of a mujoco.MjModel.
void* model_address(nb::handle model);

// Marks an object as used by this thread. While it lives, a call of another thread with the same
// object raises an error. It is created and destroyed under the interpreter lock.
class InUse {
 public:
  InUse(const void* object, const char* name);
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse();

 private:
  const void* object_;
};

// A mujoco.MjModel, and a mujoco.MjData that was made from it or from a model of the same sizes.
struct Pair {
  const void* model;
  void* data;
  InUse in_use;

  Pair(nb::handle model_object, nb::handle data_object);
};

// Returns the extent of the first axis of an array.
inline Py_ssize_t size_of(nb::handle array) { return nb::len(array); }

// A float64 array of a given shape. It keeps the buffer alive. None gives a null pointer.
class Array {
 public:
  Array(nb::handle object, const char* name, std::initializer_list<Py_ssize_t> shape,
        bool writable);
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array();
  double* data() const { return held_ ? static_cast<double*>(buffer_.buf) : nullptr; }
  double* end() const { return held_ ? data() + buffer_.len / buffer_.itemsize : nullptr; }
  const char* name() const { return name_; }

 private:
  const char* name_;
  Py_buffer buffer_;
  bool held_ = false;
};

// Raises ArgumentError if two output arrays of a caller share memory.
void require_apart(std::initializer_list<const Array*> outputs);

}  // namespace mujacobian

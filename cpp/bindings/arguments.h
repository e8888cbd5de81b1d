// Arguments from Python: MuJoCo's objects and arrays, checked by name.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>

namespace mujacobian {

namespace nb = nanobind;

// Python objects the bindings need, set once at import.
struct PythonTypes {
  nb::object model, data;               // mujoco.MjModel, mujoco.MjData
  nb::object error, unsupported_error;  // MujacobianError, UnsupportedFeatureError
  nb::object notice;                    // mujacobian.notices.notice
};
PythonTypes& python_types();

// Address of the C struct behind a mujoco.MjModel or mujoco.MjData.
void* model_address(nb::handle model);
void* data_address(nb::handle data);

// A float64 array of a given shape, held while the call runs; None gives a null pointer.
class Array {
 public:
  Array(nb::handle object, const char* name, std::initializer_list<Py_ssize_t> shape,
        bool writable);
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array();
  double* data() const { return held_ ? static_cast<double*>(buffer_.buf) : nullptr; }

 private:
  Py_buffer buffer_;
  bool held_ = false;
};

}  // namespace mujacobian

// The entry point of the module. This file is compiled for all processors of an architecture, so
// that a processor without AVX2 leads to an error and not to an illegal instruction. For the same
// reason it calls no inline functions, of which the linker may take the version of another file.
#include <Python.h>

#include "layout/platform.h"

// Creates the module without checks; NB_MODULE in module.cc defines it.
extern "C" PyObject* mujacobian_create_module();

PyMODINIT_FUNC PyInit__core() {
#ifdef MUJACOBIAN_AVX2
  if (!mujacobian::has_avx2()) {
    PyObject* errors = PyImport_ImportModule("mujacobian.errors");
    PyObject* type = errors ? PyObject_GetAttrString(errors, "UnusableError") : nullptr;
    if (type) {
      PyErr_SetString(
          type,
          "this build of mujacobian needs a processor with AVX2 and FMA (x86-64-v3). "
          "For other processors, build it from source: pip install --no-binary mujacobian "
          "mujacobian --config-settings=cmake.define.MUJACOBIAN_GENERIC=ON");
    }
    Py_DecRef(type);
    Py_DecRef(errors);
    return nullptr;
  }
#endif
  return mujacobian_create_module();
}

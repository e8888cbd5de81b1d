// Handlers of XLA's foreign function interface, through which compiled programs of JAX call the
// core without the interpreter.
#pragma once

#include "bindings/stepper.h"

namespace mujacobian {

void bind_ffi(nanobind::module_& module);

}  // namespace mujacobian

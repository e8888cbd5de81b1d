// Python bindings of steps of many worlds.
#pragma once

#include "bindings/arguments.h"

namespace mujacobian {

void bind_worlds(nb::module_& module);

}  // namespace mujacobian

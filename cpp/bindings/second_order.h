// Second derivatives in mujacobian._core.
#pragma once

#include "bindings/arguments.h"

namespace mujacobian {

void bind_second_order(nb::module_& module);

}  // namespace mujacobian

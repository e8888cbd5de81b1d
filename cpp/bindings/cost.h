// Binding of costs and norms.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_cost(nanobind::module_& module);

}  // namespace mujacobian

// Binding of costs and of the parts of a planner.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_control(nanobind::module_& module);

}  // namespace mujacobian

// Costs and the parts of a planner, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_control(nanobind::module_& module);

}  // namespace mujacobian

// Binding of planners and policies.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_control(nanobind::module_& module);

}  // namespace mujacobian

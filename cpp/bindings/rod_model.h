// Binding of the model of a world of rigid bodies and rods.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_rod_model(nanobind::module_& module);

}  // namespace mujacobian

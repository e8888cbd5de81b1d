// Binding of simulations of rigid bodies and Cosserat rods.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_rods(nanobind::module_& module);

}  // namespace mujacobian

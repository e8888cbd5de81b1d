// Rigid bodies and Cosserat rods, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_rods(nanobind::module_& module);

}  // namespace mujacobian

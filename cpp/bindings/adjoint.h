// Products with the Jacobian of a step, simulations and their adjoint, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_adjoint(nanobind::module_& module);

}  // namespace mujacobian

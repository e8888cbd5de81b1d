// Binding of products with the Jacobian of a step, simulations and their derivatives.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_adjoint(nanobind::module_& module);

}  // namespace mujacobian

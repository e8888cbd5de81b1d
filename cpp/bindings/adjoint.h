// Binding of products with the Jacobian of a step, simulations and their derivatives.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <vector>

#include "adjoint/parameter.h"

namespace mujacobian {

// (kind, id, component) of each parameter
using Parameters = std::vector<std::array<int, 3>>;

// Returns the parameters, followed by the poses of mocap bodies if `mocap` is true.
std::vector<Parameter> read(const ModelView& m, const Parameters& all, bool mocap = false);

inline ParameterList view(const std::vector<Parameter>& list) {
  return {list.data(), static_cast<int>(list.size())};
}

void bind_adjoint(nanobind::module_& module);

}  // namespace mujacobian

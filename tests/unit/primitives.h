// The parts of the module `primitives`, one per file.
#pragma once

#include <nanobind/nanobind.h>

namespace mujacobian {

void bind_spatial(nanobind::module_& m);
void bind_number(nanobind::module_& m);
void bind_linear(nanobind::module_& m);
void bind_quadratic(nanobind::module_& m);
void bind_contact(nanobind::module_& m);

}  // namespace mujacobian

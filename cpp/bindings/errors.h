// Errors of the core as Python exceptions.
#pragma once

#include <exception>
#include <string>

#include "bindings/arguments.h"
#include "layout/views.h"

namespace mujacobian {

// Raise the core's error as a Python exception; `where` goes before its message.
[[noreturn]] void raise(std::exception_ptr error, const std::string& where = "");

// Raise unless the data was made from the model.
void require_pair(const ModelView& m, const DataView& d);

}  // namespace mujacobian

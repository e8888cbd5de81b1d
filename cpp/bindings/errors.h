// Errors of the core as Python exceptions.
#pragma once

#include <exception>
#include <string>

#include "bindings/arguments.h"
#include "layout/notice.h"
#include "layout/views.h"

namespace mujacobian {

// Raise the core's error as a Python exception; `where` goes before its message.
[[noreturn]] void raise(std::exception_ptr error, const std::string& where = "");

// Hand this thread's notices about the model to Python, which may raise, and forget them.
void report_notices(nb::handle model);

// Run f() without the interpreter lock and raise its error.
template <class F>
void run(F f) {
  take_notices();  // of a call that failed
  std::exception_ptr error;
  {
    nb::gil_scoped_release release;
    try {
      f();
    } catch (const std::exception&) {
      error = std::current_exception();
    }
  }
  if (error) raise(error);
}

// The same for work on a model, and report what was noticed.
template <class F>
void run(nb::handle model, F f) {
  run(f);
  report_notices(model);
}

// Raise unless the data was made from the model.
void require_pair(const ModelView& m, const DataView& d);

}  // namespace mujacobian

// Errors, notices and interrupts of the core, as Python knows them.
#pragma once

#include <exception>
#include <string>

#include "bindings/arguments.h"
#include "layout/interrupt.h"
#include "layout/notice.h"

namespace mujacobian {

// Raise the core's error as a Python exception; `where` goes before its message.
[[noreturn]] void raise(std::exception_ptr error, const std::string& where = "");

// Hand this thread's notices about the model to Python, which may raise, and forget them.
void report_notices(nb::handle model);

// Whether the user wants the calling thread to stop: a signal handler of Python has raised, or the
// thread works under a StopFlag that is set.
bool is_interrupted();

// Set by one thread of Python to interrupt others, which work inside a `with` of it.
void bind_stop_flag(nb::module_& module);

// Run f() without the interpreter lock and raise its error.
template <class F>
void run(F f) {
  take_notices();  // of a call that failed
  std::exception_ptr error;
  {
    nb::gil_scoped_release release;
    try {
      const Interruptible scope(is_interrupted);
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

}  // namespace mujacobian

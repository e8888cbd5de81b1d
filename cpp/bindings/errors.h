// Python exceptions, warnings and interrupts for errors and notices of the core.
#pragma once

#include <exception>
#include <string>

#include "bindings/arguments.h"
#include "layout/interrupt.h"
#include "layout/notice.h"

namespace mujacobian {

// Raises the core's error as a Python exception. The message begins with `where`.
[[noreturn]] void raise(std::exception_ptr error, const std::string& where = "");

// Passes this thread's notices about the model to Python, which may raise, and clears them.
void report_notices(nb::handle model);

// Returns whether the calling thread should stop: a signal handler of Python has raised, or the
// StopFlag of the thread is set.
bool is_interrupted();

// Binds StopFlag. A thread of Python sets it to interrupt other threads that have entered it as a
// context.
void bind_stop_flag(nb::module_& module);

// Runs f() without the interpreter lock and raises its error.
template <class F>
void run(F f) {
  if (!notices().is_empty()) take_notices();  // of an earlier call that failed
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

// The same for work on a model. Also reports its notices.
template <class F>
void run(nb::handle model, F f) {
  run(f);
  report_notices(model);
}

}  // namespace mujacobian

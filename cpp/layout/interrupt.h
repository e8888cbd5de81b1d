// Interrupts of long computations (Ctrl-C). The computations poll between steps.
#pragma once

#include <chrono>
#include <exception>

namespace mujacobian {

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// While an object of this class lives, the polls of its thread call `asked` every 50 ms.
class Interruptible {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Interruptible(bool (*asked)()) : outer_(current()), asked_(asked) { current() = this; }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() { current() = outer_; }

  void poll() {
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    const bool is_first = next_ == Clock::time_point();
    next_ = now + std::chrono::milliseconds(50);
    if (!is_first && asked_()) throw Interrupted();
  }

  // The object of this thread, null if nothing can interrupt the thread.
  static Interruptible*& current() {
    thread_local Interruptible* mine = nullptr;
    return mine;
  }

 private:
  Interruptible* outer_;
  bool (*asked_)();
  Clock::time_point next_;  // the first poll sets it, because short work does not read the clock
};

// Throws Interrupted if the user wants this thread to stop.
inline void poll_interrupt() {
  if (Interruptible* mine = Interruptible::current()) mine->poll();
}

}  // namespace mujacobian

// Threads that stay, so that a plan does not pay for making them.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "layout/notice.h"

namespace mujacobian {

class Pool {
 public:
  // As many threads as this, or as the system gives.
  explicit Pool(int threads);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Call work(thread) in every thread, the caller's being 0, and wait for all. It must not throw.
  // What they noticed is among the caller's notices then.
  void run(const std::function<void(int)>& work);

 private:
  void serve(int thread);

  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void(int)>* work_ = nullptr;
  long round_ = 0;
  int busy_ = 0;
  bool closing_ = false;
  Notices found_;
  std::vector<std::thread> threads_;
};

}  // namespace mujacobian

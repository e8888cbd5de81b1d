// A pool of persistent threads, so that a plan does not create threads.
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
  // Uses this number of threads, or fewer if the system does not provide them.
  explicit Pool(int threads);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Call work(thread) in all threads, where the calling thread is 0, and wait until all return.
  // `work` must not throw. Afterwards, the calling thread has the notices of all threads.
  void run(const std::function<void(int)>& work);

 private:
  // Loop of a thread: wait for work and run it.
  void serve(int thread);

  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void(int)>* work_ = nullptr;
  long long round_ = 0;
  int busy_ = 0;
  bool closing_ = false;
  Notices found_;  // of the other threads
  std::vector<std::thread> threads_;
};

}  // namespace mujacobian

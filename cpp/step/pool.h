// A pool of persistent threads, so that a plan or a batch does not create threads.
#pragma once

#include <climits>
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

  // Calls work(thread) in up to `most` threads, where the calling thread is 0, and waits until all
  // return. The calling thread must be able to do all the work, because a thread that has not
  // begun when it returns does not join anymore: on a busy machine it may take long to wake up.
  // `work` must not throw. Afterwards, the calling thread has the notices of all threads.
  void run(const std::function<void(int)>& work, int most = INT_MAX);

 private:
  // Loop of a thread: wait for work and run it.
  void serve(int thread);

  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void(int)>* work_ = nullptr;  // null: no thread may join
  long long round_ = 0;
  int most_ = 0, busy_ = 0;
  bool closing_ = false;
  Notices found_;  // of the other threads
  std::vector<std::thread> threads_;
};

// Runs work(thread) in up to `threads` threads of a common pool, or in this one only if another
// call uses them.
void run_shared(const std::function<void(int)>& work, int threads);

// Forgets the threads of the common pool, which do not exist in the child of a fork.
void forget_threads();

}  // namespace mujacobian

#include "step/pool.h"

#include <system_error>

namespace mujacobian {

Pool::Pool(int threads) {
  try {
    for (int k = 1; k < threads; k++) threads_.emplace_back([this, k] { serve(k); });
  } catch (const std::system_error&) {
    // continue with the threads that were created
  }
}

Pool::~Pool() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  begin_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Pool::run(const std::function<void(int)>& work, int most) {
  if (most <= 1 || threads_.empty()) return work(0);
  {
    std::lock_guard lock(mutex_);
    work_ = &work;
    most_ = most;
    round_++;
  }
  begin_.notify_all();
  work(0);
  std::unique_lock lock(mutex_);
  work_ = nullptr;
  end_.wait(lock, [this] { return busy_ == 0; });
  notices().merge(found_);
  found_ = {};
}

void Pool::serve(int thread) {
  long long round = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    begin_.wait(lock, [&] { return closing_ || (work_ && round_ != round); });
    if (closing_) return;
    round = round_;
    if (thread >= most_) continue;
    const std::function<void(int)>& work = *work_;
    busy_++;
    lock.unlock();
    work(thread);
    lock.lock();
    found_.merge(take_notices());
    if (--busy_ == 0) end_.notify_one();
  }
}

namespace {

// The common pool. One call at a time uses it.
struct Shared {
  std::mutex mutex;
  std::unique_ptr<Pool> pool;
};

Shared*& shared() {
  static Shared* all = new Shared;  // never destroyed: threads may outlive static objects
  return all;
}

}  // namespace

void run_shared(const std::function<void(int)>& work, int threads) {
  if (threads <= 1) return work(0);
  Shared& all = *shared();
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  if (!lock) return work(0);
  if (!all.pool || all.pool->size() < threads) all.pool = std::make_unique<Pool>(threads);
  all.pool->run(work, threads);
}

void forget_threads() { shared() = new Shared; }

}  // namespace mujacobian

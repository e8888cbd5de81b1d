#include "step/batch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "layout/engine.h"
#include "layout/interrupt.h"
#include "layout/notice.h"
#include "layout/sleep.h"
#include "layout/unsupported.h"
#include "step/support.h"

namespace mujacobian {
namespace {

// The work that is shared by the threads.
class Batch {
 public:
  Batch(const BatchInputs& inputs, const BatchWork& work, std::vector<int>* refused)
      : in_(inputs), work_(work), refused_(refused) {}

  // Takes the next state until there are none left. Runs in every thread.
  void work() {
    Arena arena;
    OwnedData data;
    int index = next_++;
    while (index < in_.n && index <= first_failure_) {
      try {
        poll_interrupt();
        if (!data) data = make_data(in_.model);
        differentiate(data.get(), index, arena);
      } catch (const Unsupported&) {
        refuse(index);
      } catch (const std::exception&) {
        fail({index, std::current_exception()});
      }
      index = next_++;
    }
    std::lock_guard lock(mutex_);
    found_.merge(take_notices());
  }

  // Returns the notices of all threads.
  const Notices& found() const { return found_; }
  std::optional<BatchFailure> failure() const { return failure_; }

 private:
  void differentiate(void* data, int index, Arena& arena) {
    const ModelView m = without_sleep(view_model(in_.model));
    DataView d = view_data(data);
    const std::size_t i = index, nv = m.nv, nu = m.nu;
    engine().mj_setState(in_.model, data, in_.states + i * in_.nstate, engine().physics_spec);
    std::memcpy(const_cast<double*>(d.ctrl), in_.controls + i * nu, nu * sizeof(double));
    std::memset(const_cast<double*>(d.qacc_warmstart), 0, nv * sizeof(double));
    require_state(m, d);
    forward(in_.model, data);
    d = view_data(data);
    require_awake(m, d);
    arena.reset();
    work_(m, d, i, arena);
  }

  // Records the current exception of an item without an exact derivative.
  void refuse(int index) {
    if (!refused_) return fail({index, std::current_exception()});
    std::lock_guard lock(mutex_);
    refused_->push_back(index);
  }

  void fail(BatchFailure failure) {
    std::lock_guard lock(mutex_);
    if (failure_ && failure_->index < failure.index) return;
    first_failure_ = failure.index;
    failure_ = std::move(failure);
  }

  const BatchInputs& in_;
  const BatchWork& work_;
  std::vector<int>* refused_;
  std::atomic<int> next_{0}, first_failure_{INT32_MAX};
  std::mutex mutex_;
  std::optional<BatchFailure> failure_;
  Notices found_;
};

}  // namespace

std::optional<BatchFailure> run_batch(const BatchInputs& inputs, const BatchWork& work, int threads,
                                      std::vector<int>* refused) {
  Batch batch(inputs, work, refused);
  std::vector<std::thread> others;
  try {
    for (int t = 1; t < threads && t < inputs.n; t++) others.emplace_back([&] { batch.work(); });
  } catch (const std::system_error&) {
    // continue with fewer threads: results do not depend on their number
  }
  batch.work();
  for (std::thread& thread : others) thread.join();
  notices().merge(batch.found());
  if (refused) std::sort(refused->begin(), refused->end());
  return batch.failure();
}

}  // namespace mujacobian

#include "control/planner.h"

#include "layout/enums.h"
#include "layout/interrupt.h"
#include "layout/platform.h"
#include "layout/unsupported.h"
#include "linear/lanes.h"
#include "second_order/hessian.h"
#include "step/support.h"

namespace mujacobian {
namespace {

constexpr int kSnapshots = 8;  // steps that may wait for differentiation with a copy of their data

// Part of `all` that belongs to one candidate of a line search.
Knots knots_of(const ModelView& m, const Task& task, const Knots& all, int candidate) {
  const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(candidate) * task.T;
  const int size = engine().mj_stateSize(task.model, engine().integration_spec);
  return {all.rows + first * size, all.controls + first * m.nu, all.sensors + first * m.nsensordata,
          all.qacc + first * m.nv,
          all.norms + first * static_cast<std::ptrdiff_t>(task.cost->terms.size())};
}

}  // namespace

// Queue of knots between the thread that simulates and the threads that differentiate.
class Planner::Feed {
 public:
  struct Item {
    int t;
    void* snapshot;  // null: start from the recorded row
  };

  explicit Feed(const std::vector<OwnedData>& snapshots) {
    for (const OwnedData& snapshot : snapshots) free_.push_back(snapshot.get());
  }

  // Returns a free snapshot, or null if all are in use.
  void* take_snapshot() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    void* snapshot = free_.back();
    free_.pop_back();
    return snapshot;
  }

  void push(Item item) {
    {
      std::lock_guard lock(mutex_);
      items_.push_back(item);
    }
    ready_.notify_one();
  }

  void give_back(void* snapshot) {
    if (!snapshot) return;
    std::lock_guard lock(mutex_);
    free_.push_back(snapshot);
  }

  // End the queue; with `discard`, also drop the waiting knots.
  void close(bool discard) {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      if (discard) items_.clear();
    }
    ready_.notify_all();
  }

  // Waits for the next knot. Returns nothing at the end of the queue.
  std::optional<Item> next() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    const Item item = items_.front();
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Item> items_;
  std::vector<void*> free_;
  bool closed_ = false;
};

Planner::Planner(const void* model, CostRows cost, Backend backend, double eps, bool warm_start,
                 int threads, bool may_refuse)
    : cost_(std::move(cost)),
      sensors_(used_sensors(view_model(model), cost_)),
      differentiator_(model, backend, eps, warm_start),
      may_refuse_(may_refuse),
      pool_(threads),
      arenas_(pool_.size()),
      cost_arenas_(pool_.size()) {
  for (int k = 0; k < pool_.size(); k++) data_.push_back(make_data(model));
  // only analytic derivatives in other threads use snapshots
  for (int k = 0; k < kSnapshots && pool_.size() > 1 && backend == Backend::kAnalytic; k++) {
    snapshots_.push_back(make_data(model));
  }
  rolling_ = make_data(model);
  require_no_history(view_model(model), true, sensors_.data());
  try {
    differentiator_.require(sensors_.data());
  } catch (const Unsupported&) {
    if (!may_refuse) throw;
    unsupported_ = std::current_exception();
  }
}

void Planner::differentiate_knot(const Task& task, const Knots& knots, const Expansion& out, int t,
                                 int thread, const void* here) {
  if (unsupported_) std::rethrow_exception(unsupported_);
  // outputs of this knot
  const long long begin = processor_time();
  const ModelView m = view_model(task.model);
  const std::ptrdiff_t size = engine().mj_stateSize(task.model, engine().integration_spec);
  Outputs lin = batch_item(m, out.lin, t);
  lin.sensors = sensors_.data();
  if (t == task.T - 1) lin.A = lin.B = nullptr;
  // derivatives of the step and of the sensors
  Arena& arena = arenas_[thread];
  if (here) {
    differentiator_.transition_here(here, lin, kept_step(t), arena);
  } else {
    differentiator_.transition_at(data_[thread].get(), knots.rows + t * size,
                                  knots.qacc + static_cast<std::ptrdiff_t>(t) * m.nv, t, lin,
                                  kept_step(t), arena);
  }
  nanoseconds_ += processor_time() - begin;
  // derivatives of the cost
  arena.reset();
  const int nz = cost_.nz(), stride = round_to_lanes(nz);
  expand_cost(cost_,
              {knots.sensors + static_cast<std::ptrdiff_t>(t) * m.nsensordata,
               knots.controls + static_cast<std::ptrdiff_t>(t) * m.nu,
               task.offsets + static_cast<std::ptrdiff_t>(t) * cost_.count()},
              task.weights, lin.C, lin.D, out.gradient + static_cast<std::ptrdiff_t>(t) * nz,
              out.hessian + static_cast<std::ptrdiff_t>(t) * nz * stride, stride, arena);
}

void Planner::fail(int index) {
  std::lock_guard lock(mutex_);
  if (failure_ && failure_->index <= index) return;
  failure_ = BatchFailure{index, std::current_exception()};
}

void Planner::fail_knot(int t) {
  try {
    throw;
  } catch (const Unsupported&) {
    if (may_refuse_) {
      std::lock_guard lock(mutex_);
      refused_.push_back(t);
      return;
    }
    fail(t);
  } catch (const std::exception&) {
    fail(t);
  }
}

void Planner::forget_failures() {
  failure_.reset();
  refused_.clear();
}

Rolled Planner::follow(const Task& task, const Policy& policy, double feedback, const Knots& knots,
                       const Expansion& out, bool keep) {
  const ModelView m = view_model(task.model);
  const std::ptrdiff_t size = engine().mj_stateSize(task.model, engine().integration_spec);
  const bool analytic = differentiator_.backend() == Backend::kAnalytic;
  const bool keeps_data = m.opt.integrator != integrator::kRK4;  // RK4 ends at another stage
  forget_failures();
  prepare_steps(task.T, keep);
  Feed feed(snapshots_);
  void* rolling = rolling_.get();
  Rolled result{};
  std::vector<double> state(m.nq + m.nv + m.na), next(size);

  // the control of a knot is that of the policy at its time and state
  auto control = [&](int, const DataView& d, double* ctrl) {
    read_state(m, d, state.data());
    evaluate_policy(m, policy, task.bounds, d.time, state.data(), feedback, ctrl, cost_arenas_[0]);
  };
  // mj_step changes only the state after its mj_forward. If the state of the knot is restored, the
  // derivative does not need another mj_forward.
  auto restore = [&](void* data, int t) {
    engine().mj_setState(task.model, data, knots.rows + t * size, engine().integration_spec);
  };
  // after a step, hand the knot to another thread or differentiate it in this thread
  auto done = [&](int t) {
    // without usable data: other threads start from the recorded row
    if (!analytic || !keeps_data) return feed.push({t, nullptr});
    // with a free snapshot: another thread differentiates the copy
    if (void* snapshot = feed.take_snapshot()) {
      copy_data(snapshot, task.model, rolling);
      restore(snapshot, t);
      return feed.push({t, snapshot});
    }
    // otherwise: differentiate here, then return to the next state
    engine().mj_getState(task.model, rolling, next.data(), engine().integration_spec);
    restore(rolling, t);
    try {
      differentiate_knot(task, knots, out, t, 0, rolling);
    } catch (const std::exception&) {
      fail_knot(t);
    }
    engine().mj_setState(task.model, rolling, next.data(), engine().integration_spec);
  };
  // simulate all knots; an aborted rollout needs no derivatives
  auto simulate = [&] {
    try {
      result = roll(task, rolling, knots, std::numeric_limits<double>::infinity(), cost_arenas_[0],
                    control, done, [] { return false; });
    } catch (const std::exception&) {
      fail(-1);
    }
    feed.close(result.taken < task.T);
  };
  // thread 0 simulates; all threads differentiate until the queue is empty
  pool_.run([&](int thread) {
    const Quiet quiet;
    if (thread == 0) simulate();
    while (const std::optional<Feed::Item> item = feed.next()) {
      try {
        poll_interrupt();
        differentiate_knot(task, knots, out, item->t, thread, item->snapshot);
      } catch (const Interrupted&) {
        fail(-1);
        feed.close(true);
      } catch (const std::exception&) {
        fail_knot(item->t);
      }
      feed.give_back(item->snapshot);
    }
  });
  return result;
}

template <class Work>
void Planner::for_knots(int count, Work work) {
  forget_failures();
  std::atomic<int> next{0};
  pool_.run([&](int thread) {
    const Quiet quiet;
    for (int t = next++; t < count; t = next++) {
      try {
        poll_interrupt();
        work(t, thread);
      } catch (const Interrupted&) {
        fail(-1);
        next = count;
      } catch (const std::exception&) {
        fail_knot(t);
      }
    }
  });
}

void Planner::prepare_steps(int count, bool keep) {
  keeps_ = keep;
  if (keep) kept_.resize(count);
  for (KeptStep& step : kept_) step.clear();
}

void Planner::differentiate(const Task& task, const Knots& knots, const Expansion& out, bool keep) {
  prepare_steps(task.T, keep);
  for_knots(task.T,
            [&](int t, int thread) { differentiate_knot(task, knots, out, t, thread, nullptr); });
}

void Planner::curve_knot(const Task& task, const Knots& knots, int t, int thread,
                         const double* next, const double* hessian, double* curved) {
  const ModelView m = view_model(task.model);
  const std::ptrdiff_t nx = cost_.nx, nu = cost_.nu, stride = round_to_lanes(cost_.nz());
  // the cotangents of the next state and of the sensors
  Arena& arena = arenas_[thread];
  arena.reset();
  const double* d_next = next ? next : arena.zeros<double>(nx);
  double* d_sensors = arena.take<double>(m.nsensordata);
  differentiate_cost(
      cost_,
      {knots.sensors + static_cast<std::ptrdiff_t>(t) * m.nsensordata, knots.controls + t * nu,
       task.offsets + static_cast<std::ptrdiff_t>(t) * cost_.count()},
      task.weights, d_sensors, arena);
  // the second derivatives, which are added to those of the cost
  HessianOutputs out{};
  out.xx = arena.take<double>(nx * nx);
  out.xu = arena.take<double>(nx * nu);
  out.uu = arena.take<double>(nu * nu);
  const StepCotangent given{d_next, d_sensors};
  const KeptStep* step = kept_step(t);
  if (step && step->is_kept()) {
    mujacobian::hessian(without_sleep(m), *step, given, out, arena);
  } else {
    const std::ptrdiff_t size = engine().mj_stateSize(task.model, engine().integration_spec);
    const DataView d = differentiator_.forward_at(data_[thread].get(), knots.rows + t * size,
                                                  knots.qacc + t * m.nv);
    mujacobian::hessian(without_sleep(m), d, given, out, arena);
  }
  const double* from = hessian + t * cost_.nz() * stride;
  double* to = curved + t * cost_.nz() * stride;
  for (int i = 0; i < nx; i++, from += stride, to += stride) {
    for (int j = 0; j < nx; j++) to[j] = from[j] + out.xx[i * nx + j];
    for (int j = 0; j < nu; j++) to[nx + j] = from[nx + j] + out.xu[i * nu + j];
  }
  for (int i = 0; i < nu; i++, from += stride, to += stride) {
    for (int j = 0; j < nx; j++) to[j] = from[j] + out.xu[j * nu + i];
    for (int j = 0; j < nu; j++) to[nx + j] = from[nx + j] + out.uu[i * nu + j];
  }
}

void Planner::add_curvature(const Task& task, const Knots& knots, int count, const double* values,
                            const double* hessian, double* curved) {
  for_knots(count, [&](int t, int thread) {
    const bool is_last = t == count - 1;
    const double* next = values + static_cast<std::ptrdiff_t>(t + 1) * cost_.nx;
    try {
      curve_knot(task, knots, t, thread, is_last ? nullptr : next, hessian, curved);
    } catch (const std::exception&) {
      fail(t);  // finite differences do not replace a second derivative
    }
  });
}

void Planner::search(const Task& task, const Search& search, const Knots& knots, Rolled* results) {
  const ModelView m = view_model(task.model);
  const std::ptrdiff_t nu = m.nu, nx = state_size(m), width = m.nq + m.nv + m.na;
  forget_failures();
  // the next candidate, and the first one that was accepted
  std::atomic<int> next{0}, accepted{search.count};
  pool_.run([&](int thread) {
    const Quiet quiet;
    std::vector<double> state(width);
    for (int k = next++; k < search.count; k = next++) {
      // skip candidates after an accepted one
      results[k] = {0, false, std::numeric_limits<double>::infinity()};
      if (accepted < k) continue;
      // controls with this step size and with feedback to the nominal trajectory
      auto control = [&](int t, const DataView& d, double* ctrl) {
        read_state(m, d, state.data());
        feed_back(m, task.bounds, search.controls + t * nu, search.steps + t * nu, search.sizes[k],
                  search.gains + t * nu * nx, search.states + t * width, state.data(), ctrl,
                  cost_arenas_[thread]);
      };
      // simulate, until an earlier candidate is accepted
      try {
        results[k] = roll(
            task, data_[thread].get(), knots_of(m, task, knots, k), search.most,
            cost_arenas_[thread], control, [](int) {}, [&] { return accepted < k; });
      } catch (const Interrupted&) {
        fail(-1);
        accepted = -1;
      } catch (const std::exception&) {
        fail(k);
      }
      // record the acceptance, unless an earlier candidate is accepted already
      int best = accepted;
      while (results[k].cost <= search.accept[k] && k < best) {
        if (accepted.compare_exchange_weak(best, k)) break;
      }
    }
  });
}

double Planner::derivative_seconds() { return 1e-9 * nanoseconds_.exchange(0); }

}  // namespace mujacobian

#include "control/planner.h"

#include <numeric>

#include "control/knot_feed.h"
#include "layout/enums.h"
#include "layout/interrupt.h"
#include "layout/platform.h"
#include "layout/sleep.h"
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

const double* Planner::leave_out(const Task& task, int t, const std::vector<int>& sensors,
                                 Arena& arena) {
  const ModelView m = view_model(task.model);
  const int n = cost_.count();
  const double* offsets = task.offsets + static_cast<std::ptrdiff_t>(t) * n;
  if (sensors.empty()) return offsets;
  double* fewer = arena.take<double>(n);
  std::copy_n(offsets, n, fewer);
  std::vector<unsigned char> columns(cost_.graph.width() + cost_.graph.count(), 0);
  for (int s : sensors) std::fill_n(columns.begin() + m.sensor_adr[s], m.sensor_dim[s], 1);
  cost_.graph.mark_nodes(columns);
  for (int i = 0; i < n; i++) {
    if (reads(cost_, i, columns)) fewer[i] = std::numeric_limits<double>::quiet_NaN();
  }
  return fewer;
}

const double* Planner::differentiate_step(const Task& task, const Knots& knots, int t, int thread,
                                          const void* here, Outputs lin) {
  const ModelView m = view_model(task.model);
  const std::ptrdiff_t size = engine().mj_stateSize(task.model, engine().integration_spec);
  Arena& arena = arenas_[thread];
  std::vector<unsigned char> wanted;
  std::vector<int> lost;  // sensors without a derivative
  lin.sensors = sensors_.data();
  while (true) {
    try {
      if (here) {
        differentiator_.transition_here(here, lin, kept_step(t), arena);
      } else {
        differentiator_.transition_at(data_[thread].get(), knots.rows + t * size,
                                      knots.qacc + static_cast<std::ptrdiff_t>(t) * m.nv, t, lin,
                                      kept_step(t), arena);
      }
      break;
    } catch (const Unsupported& error) {
      if (error.sensor < 0 || may_refuse_) throw;
      // without this sensor, whose rows are zero
      const std::ptrdiff_t first = m.sensor_adr[error.sensor], count = m.sensor_dim[error.sensor];
      std::fill_n(lin.C + first * cost_.nx, count * cost_.nx, 0.0);
      std::fill_n(lin.D + first * cost_.nu, count * cost_.nu, 0.0);
      if (lost.empty()) wanted = sensors_;
      wanted[error.sensor] = 0;
      lin.sensors = wanted.data();
      lost.push_back(error.sensor);
      std::lock_guard lock(mutex_);
      left_out_.push_back({t, error.sensor, error.element, error.reason});
    }
  }
  arena.reset();
  return leave_out(task, t, lost, arena);
}

void Planner::differentiate_knot(const Task& task, const Knots& knots, const Expansion& out, int t,
                                 int thread, const void* here) {
  if (unsupported_) std::rethrow_exception(unsupported_);
  // derivatives of the step and of the sensors
  const long long begin = processor_time();
  const ModelView m = view_model(task.model);
  Outputs lin = batch_item(m, out.lin, t);
  if (t == task.T - 1) lin.A = lin.B = nullptr;
  const double* offsets = differentiate_step(task, knots, t, thread, here, lin);
  nanoseconds_ += processor_time() - begin;
  // derivatives of the cost
  const int nz = cost_.nz(), stride = round_to_lanes(nz);
  expand_cost(cost_,
              {knots.sensors + static_cast<std::ptrdiff_t>(t) * m.nsensordata,
               knots.controls + static_cast<std::ptrdiff_t>(t) * m.nu, offsets},
              task.weights + t * cost_.terms.size(), lin.C, lin.D,
              out.gradient + static_cast<std::ptrdiff_t>(t) * nz,
              out.hessian + static_cast<std::ptrdiff_t>(t) * nz * stride, stride, arenas_[thread]);
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
  std::lock_guard lock(mutex_);
  broken_.push_back(t);
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
  prepare_knots(task.T, keep);
  KnotFeed feed(snapshots_);
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
    while (const std::optional<KnotFeed::Item> item = feed.next()) {
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

double Planner::shoot(const Task& task, const double* rows, const Knots& knots, double* gaps) {
  const ModelView m = view_model(task.model);
  const std::ptrdiff_t nx = state_size(m),
                       size = engine().mj_stateSize(task.model, engine().integration_spec);
  std::vector<double> costs(task.T, std::numeric_limits<double>::infinity());
  std::fill_n(gaps, nx, 0.0);
  for_knots(task.T, [&](int t, int thread) {
    void* data = data_[thread].get();
    reset(task.model, data);
    engine().mj_setState(task.model, data, rows + t * size, engine().integration_spec);
    double cost;
    if (!simulate_knot(task, data, t, knots, cost, cost_arenas_[thread])) return;
    costs[t] = cost;
    if (t == task.T - 1) return;
    // the state follows the time in a row
    std::vector<double> end(m.nq + m.nv + m.na);
    read_state(m, view_data(data), end.data());
    difference_states(m, rows + (t + 1) * size + 1, end.data(), gaps + (t + 1) * nx);
  });
  const double sum = std::accumulate(costs.begin(), costs.end(), 0.0);
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

void Planner::prepare_knots(int count, bool keep) {
  broken_.clear();
  left_out_.clear();
  keeps_ = keep;
  if (keep) kept_.resize(count);
  for (KeptStep& step : kept_) step.clear();
}

void Planner::differentiate(const Task& task, const Knots& knots, const Expansion& out, bool keep) {
  prepare_knots(task.T, keep);
  for_knots(task.T,
            [&](int t, int thread) { differentiate_knot(task, knots, out, t, thread, nullptr); });
}

void Planner::curve_knot(const Task& task, const Knots& knots, int t, int thread,
                         const double* next, const Curvature& given, double* curved) {
  const ModelView m = view_model(task.model);
  const std::ptrdiff_t nx = cost_.nx, nu = cost_.nu, stride = round_to_lanes(cost_.nz());
  // the cotangents of the next state and of the sensors
  Arena& arena = arenas_[thread];
  arena.reset();
  const double* d_next = next ? next : arena.zeros<double>(nx);
  double* d_sensors = arena.take<double>(m.nsensordata);
  std::vector<int> lost;
  for (const LeftOut& one : left_out_) {
    if (one.knot == t) lost.push_back(one.sensor);
  }
  const CostKnot knot{knots.sensors + static_cast<std::ptrdiff_t>(t) * m.nsensordata,
                      knots.controls + t * nu, leave_out(task, t, lost, arena)};
  const double* weights = task.weights + t * cost_.terms.size();
  differentiate_cost(cost_, knot, weights, d_sensors, arena);
  // the second derivatives, which are added to those of the cost
  HessianOutputs out{};
  out.xx = arena.take<double>(nx * nx);
  out.xu = arena.take<double>(nx * nu);
  out.uu = arena.take<double>(nu * nu);
  const StepCotangent cotangent{d_next, d_sensors};
  const KeptStep* step = kept_step(t);
  if (step && step->is_kept()) {
    mujacobian::hessian(without_sleep(m), *step, cotangent, out, arena);
  } else {
    const std::ptrdiff_t size = engine().mj_stateSize(task.model, engine().integration_spec);
    const DataView d = differentiator_.forward_at(data_[thread].get(), knots.rows + t * size,
                                                  knots.qacc + t * m.nv);
    mujacobian::hessian(without_sleep(m), d, cotangent, out, arena);
  }
  const double* from = given.hessian + t * cost_.nz() * stride;
  double *to = curved + t * cost_.nz() * stride, *sum = to;
  for (int i = 0; i < nx; i++, from += stride, to += stride) {
    for (int j = 0; j < nx; j++) to[j] = from[j] + out.xx[i * nx + j];
    for (int j = 0; j < nu; j++) to[nx + j] = from[nx + j] + out.xu[i * nu + j];
  }
  for (int i = 0; i < nu; i++, from += stride, to += stride) {
    for (int j = 0; j < nx; j++) to[j] = from[j] + out.xu[j * nu + i];
    for (int j = 0; j < nu; j++) to[nx + j] = from[nx + j] + out.uu[i * nu + j];
  }
  const std::ptrdiff_t readings = static_cast<std::ptrdiff_t>(t) * m.nsensordata;
  curve_cost(cost_, knot, weights, given.C + readings * nx, given.D + readings * nu, sum,
             static_cast<int>(stride), arena);
}

void Planner::add_curvature(const Task& task, const Knots& knots, const Curvature& given,
                            double* curved) {
  for_knots(task.T, [&](int t, int thread) {
    if (std::find(broken_.begin(), broken_.end(), t) != broken_.end()) return;
    const bool is_last = t == task.T - 1;
    const double* next = given.values + static_cast<std::ptrdiff_t>(t + 1) * cost_.nx;
    try {
      curve_knot(task, knots, t, thread, is_last ? nullptr : next, given, curved);
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
      // keep the part of the gap that the step size leaves
      auto leave_gap = [&](int t) {
        if (!search.gaps || t == task.T - 1) return;
        move_state(m, data_[thread].get(), search.gaps + (t + 1) * nx, search.sizes[k] - 1);
      };
      // simulate, until an earlier candidate is accepted
      try {
        results[k] = roll(task, data_[thread].get(), knots_of(m, task, knots, k), search.most,
                          cost_arenas_[thread], control, leave_gap, [&] { return accepted < k; });
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

#include "adjoint/stepper.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>

#include "adjoint/manifold.h"
#include "layout/enums.h"
#include "layout/interrupt.h"
#include "layout/sleep.h"
#include "step/pool.h"
#include "step/support.h"

namespace mujacobian {
namespace {

// Work that takes less time than this, in seconds, is not shared: to wake a thread takes as long.
constexpr double kWorthSharing = 500e-6;
// A step before its time has been measured, in seconds.
constexpr double kUsualStep = 20e-6;
// Beyond this growth Python warns that a gradient explodes (EXPLOSION in _gradient.py).
constexpr double kExplosion = 1e8;

// Returns item k of an array with items of `size` numbers; null if the array is null.
template <class T>
T* item(T* array, std::ptrdiff_t k, std::ptrdiff_t size) {
  return array ? array + k * size : nullptr;
}

bool is_finite(const double* x, std::ptrdiff_t n) {
  // a sum of zeros is NaN if and only if a number is not finite, and has no branches
  double sum = 0;
  for (std::ptrdiff_t k = 0; x && k < n; k++) sum += 0 * x[k];
  return sum == 0;
}

double norm(const double* x, int n) {
  double sum = 0;
  for (int k = 0; k < n; k++) sum += x[k] * x[k];
  return std::sqrt(sum);
}

bool has_callbacks() {
  for (const Engine::Callback& callback : engine().callbacks) {
    if (*callback.address) return true;
  }
  return false;
}

// The flag of the batch on which a thread of the pool works.
const std::atomic<bool>*& current_failure() {
  thread_local const std::atomic<bool>* mine = nullptr;
  return mine;
}
bool is_pointless() { return *current_failure(); }

// Writes poses (T, nmocap, 7) as rows of all positions, then all quaternions. Returns false if a
// quaternion has length zero.
bool arrange_poses(const double* poses, int T, int bodies, std::vector<double>& out) {
  out.resize(static_cast<std::size_t>(T) * bodies * 7);
  double* to = out.data();
  for (int t = 0; t < T; t++, poses += 7 * bodies, to += 7 * bodies) {
    for (int b = 0; b < bodies; b++) {
      const double* pose = poses + 7 * b;
      if (norm(pose + 3, 4) < kMinVal) return false;
      std::memcpy(to + 3 * b, pose, 3 * sizeof(double));
      std::memcpy(to + 3 * bodies + 4 * b, pose + 3, 4 * sizeof(double));
    }
  }
  return true;
}

// Returns whether a gradient is finite and has not exploded. `given` are the derivatives (T + 1,
// nx) with respect to each state alone, `norms` (T + 1) those of the whole derivative.
bool is_tame(const double* given, const double* norms, int T, int nx) {
  double direct = 0, last = 0, largest = 0;
  for (int t = T; t >= 0; t--) {
    if (!std::isfinite(norms[t])) return false;
    if (last == 0) last = norms[t];
    direct = std::fmax(direct, norm(given + static_cast<std::ptrdiff_t>(t) * nx, nx));
    largest = std::fmax(largest, norms[t]);
  }
  return largest <= kExplosion * std::fmax(direct, last);
}

bool any(const double* x, std::ptrdiff_t n) {
  return x && std::any_of(x, x + n, [](double value) { return value != 0; });
}

}  // namespace

std::unique_ptr<Stepper::Workspace> Stepper::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!has_sizes(model_, sizes_)) {
      idle_.clear();
      sizes_ = model_sizes(model_);
    }
    if (!idle_.empty()) {
      std::unique_ptr<Workspace> space = std::move(idle_.back());
      idle_.pop_back();
      return space;
    }
  }
  auto space = std::make_unique<Workspace>();
  space->data = make_data(model_);
  return space;
}

void Stepper::give_back(std::unique_ptr<Workspace> space) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(space));
}

std::unique_ptr<Tape> Stepper::take_tape(int n, int T) {
  if (n > kMostKeptSteps / std::max(T, 1) || !may_keep(view_model(model_))) return nullptr;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Tape> tape;
  if (tapes_.empty()) {
    tape = std::make_unique<Tape>();
  } else {
    tape = std::move(tapes_.back());
    tapes_.pop_back();
  }
  while (tape->rollouts.size() < static_cast<std::size_t>(n)) tape->rollouts.emplace_back();
  return tape;
}

void Stepper::give_back(std::unique_ptr<Tape> tape) {
  const std::lock_guard lock(mutex_);
  if (tapes_.empty()) tapes_.push_back(std::move(tape));
}

bool Stepper::each(int n, int T, int threads, std::atomic<double>& cost, const Work& work) {
  std::atomic<int> next{0}, joined{0};
  std::atomic<bool> failed{false}, interrupted{false};
  auto some = [&](int thread) {
    joined++;
    std::optional<Interruptible> scope;
    if (thread > 0) {
      current_failure() = &failed;
      scope.emplace(is_pointless);
    }
    try {
      std::unique_ptr<Workspace> space = take();
      for (int k = next++; k < n && !failed; k = next++) {
        poll_interrupt();
        if (!work(k, *space)) failed = true;
      }
      give_back(std::move(space));  // not after an error, which may have come from MuJoCo
    } catch (const Interrupted&) {
      if (thread == 0) interrupted = true;
      failed = true;
    } catch (const std::exception&) {
      failed = true;
    }
  };
  const double step = cost > 0 ? cost.load() : kUsualStep, expected = step * n * T;
  // a Python callback of MuJoCo must run in the thread that raises its exception
  const bool alone = has_callbacks() || expected < kWorthSharing;
  const auto start = std::chrono::steady_clock::now();
  run_shared(some, alone ? 1 : std::min(threads, n));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (interrupted) throw Interrupted();
  if (n > 0 && T > 0) cost = taken.count() * joined / (static_cast<double>(n) * T);
  return !failed;
}

bool Stepper::simulate(const RolloutInputs& in, const RolloutResults& out, Tape* tape, bool forces,
                       int threads) {
  const ModelView m = view_model(model_);
  const int size = stored_size(m),
            nstate = engine().mj_stateSize(model_, engine().integration_spec);
  const std::ptrdiff_t n = in.n, T = in.T;
  if (!is_finite(in.state, n * size) || !is_finite(in.ctrl, n * T * m.nu) ||
      !is_finite(in.force, n * T * m.nv) || !is_finite(in.wrench, n * T * 6 * m.nbody) ||
      !is_finite(in.mocap, n * T * 7 * m.nmocap)) {
    return false;
  }

  return each(in.n, in.T, threads, simulation_cost_, [&](int k, Workspace& space) {
    const double* state = item(in.state, k, size);
    if (state && !has_rotations(m, state)) return false;
    const double* poses = item(in.mocap, k, T * 7 * m.nmocap);
    if (poses && !arrange_poses(poses, in.T, m.nmocap, space.mocap)) return false;
    const Inputs inputs{item(in.ctrl, k, T * m.nu), item(in.force, k, T * m.nv),
                        item(in.wrench, k, T * 6 * m.nbody), poses ? space.mocap.data() : nullptr,
                        state};
    const Record record{item(out.kept, k, T * nstate), 1, item(out.states, k, (T + 1) * size),
                        item(out.sensors, k, T * m.nsensordata)};
    void* data = space.data.get();
    const int taken = tape ? mujacobian::simulate(model_, data, in.first, in.T, inputs, record,
                                                  forces, tape->rollouts[k])
                           : mujacobian::simulate(model_, data, in.first, in.T, inputs, record);
    return taken == in.T;
  });
}

bool Stepper::pull_back(const RolloutInputs& in, const double* states, const double* kept,
                        const RolloutCotangents& given, const RolloutGradients& out,
                        const Tape* tape, int threads) {
  const ModelView m = without_sleep(view_model(model_));
  const int size = stored_size(m), nx = state_size(m), ns = m.nsensordata;
  const int nstate = engine().mj_stateSize(model_, engine().integration_spec);
  const std::ptrdiff_t n = in.n, T = in.T;
  if (!is_finite(given.states, n * (T + 1) * size) || !is_finite(given.sensors, n * T * ns)) {
    return false;
  }
  const double* sensed = any(given.sensors, n * T * ns) ? given.sensors : nullptr;
  if (out.mocap && m.opt.noslip_iterations > 0) return false;
  if (has_histories(m, sensed)) return false;
  require_model(m);
  if (sensed) require_sensors(m);

  return each(in.n, in.T, threads, gradient_cost_, [&](int k, Workspace& space) {
    // derivatives in tangent coordinates
    const double* x = item(states, k, (T + 1) * size);
    space.given.assign((T + 1) * nx, 0);
    for (int t = 0; given.states && t <= in.T; t++) {
      pull_state(m, x + t * size, item(given.states, k * (T + 1) + t, size),
                 space.given.data() + t * nx);
    }
    std::vector<double> cotangent(space.given.end() - nx, space.given.end());
    space.norms.resize(T + 1);
    space.norms[T] = norm(cotangent.data(), nx);

    // reverse mode
    space.mocap.resize(out.mocap ? T * 6 * m.nmocap : 0);
    const TrajectoryPullback to{item(out.ctrl, k, T * m.nu),
                                item(out.force, k, T * m.nv),
                                item(out.wrench, k, T * 6 * m.nbody),
                                out.mocap ? space.mocap.data() : nullptr,
                                nullptr,
                                space.norms.data()};
    const auto failure =
        mujacobian::pull_back(model_, space.data.get(), item(kept, k, T * nstate), in.T,
                              {space.given.data(), item(sensed, k, T * ns)}, {nullptr, 0}, to,
                              cotangent.data(), tape ? &tape->rollouts[k] : nullptr, space.arena);
    if (failure) std::rethrow_exception(failure->error);
    if (!is_tame(space.given.data(), space.norms.data(), in.T, nx)) return false;

    // gradients in the layout of the inputs
    if (out.state) lift_gradient(m, x, cotangent.data(), out.state + k * size);
    if (out.mocap) {
      lift_poses(item(in.mocap, k, T * 7 * m.nmocap), space.mocap.data(), in.T * m.nmocap,
                 item(out.mocap, k, T * 7 * m.nmocap));
    }
    return true;
  });
}

bool Stepper::push(const RolloutInputs& in, const double* states, const double* kept,
                   const double* moved, const double* moved_ctrl, double* d_states,
                   double* d_sensors, int threads) {
  const ModelView m = without_sleep(view_model(model_));
  const int size = stored_size(m), nx = state_size(m), ns = m.nsensordata;
  const int nstate = engine().mj_stateSize(model_, engine().integration_spec);
  const std::ptrdiff_t n = in.n, T = in.T;
  if (!is_finite(moved, n * size) || !is_finite(moved_ctrl, n * T * m.nu)) return false;
  if (has_histories(m, d_sensors)) return false;
  require_model(m);
  if (d_sensors) require_sensors(m);

  return each(in.n, in.T, threads, push_cost_, [&](int k, Workspace& space) {
    const double* x = item(states, k, (T + 1) * size);
    space.given.assign((T + 1) * nx, 0);
    if (moved) reduce_change(m, x, item(moved, k, size), space.given.data());
    const auto failure = push_direction(
        model_, space.data.get(), item(kept, k, T * nstate), in.T, item(moved_ctrl, k, T * m.nu),
        {{nullptr, 0}, nullptr}, space.given.data(), item(d_sensors, k, T * ns), {}, space.arena);
    if (failure) std::rethrow_exception(failure->error);
    if (!is_finite(space.given.data(), (T + 1) * nx)) return false;
    for (int t = 0; t <= in.T; t++) {
      push_change(m, x + t * size, space.given.data() + t * nx,
                  item(d_states, k * (T + 1) + t, size));
    }
    return true;
  });
}

}  // namespace mujacobian

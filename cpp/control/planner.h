// The parts of an iteration that simulate, in threads that keep their data from plan to plan.
#pragma once

#include <optional>
#include <vector>

#include "control/derivative.h"
#include "control/pool.h"
#include "control/rollout.h"
#include "step/batch.h"

namespace mujacobian {

// Derivatives of all knots. Not written are A and B of the last one, and exact C and D of sensors
// that the cost does not read.
struct Expansion {
  Outputs lin;       // (T, ...)
  double* gradient;  // (T, nz) of the cost
  double* hessian;   // (T, nz, nz padded to whole lanes)
};

// Rollouts that try several step sizes.
struct Search {
  int count;
  const double* sizes;   // (count), the preferred first
  const double* accept;  // (count): with this cost or less, what comes after is not needed
  double most;           // a rollout that costs more is abandoned
  const double* states;  // (T, nq + nv + na), controls (T, nu): the trajectory to start from
  const double* controls;
  const double* steps;  // (T - 1, nu)
  const double* gains;  // (T - 1, nu, nx)
};

class Planner {
 public:
  Planner(const void* model, CostRows cost, Backend backend, double eps, bool warm_start,
          int threads);

  const CostRows& cost() const { return cost_; }

  // Throws Unsupported if the model has something that the backend does not cover.
  void require() const { differentiator_.require(sensors_.data()); }

  // A plan of T knots that begins `shift` knots after the last one, negative: unrelated to it.
  void begin(int T, int shift) { differentiator_.begin(T, shift); }

  // Follow a policy from the start and, on the way, differentiate.
  Rolled follow(const Task& task, const Policy& policy, double feedback, const Knots& knots,
                const Expansion& out);

  // Differentiate at knots that have been simulated.
  void differentiate(const Task& task, const Knots& knots, const Expansion& out);

  // Rollouts into `knots`, which follow one another, and `results`.
  void search(const Task& task, const Search& search, const Knots& knots, Rolled* results);

  // Seconds of processor time that derivatives have taken since they were asked for last.
  double derivative_seconds();

  // Where and why the last call stopped.
  const std::optional<BatchFailure>& failure() const { return failure_; }

 private:
  class Feed;

  // Derivatives of knot t: of `data` as mj_step left it, with the state put back, or at its row.
  void differentiate_knot(const Task& task, const Knots& knots, const Expansion& out, int t,
                          int thread, const void* here);
  void fail(int index);

  const void* model_;
  CostRows cost_;
  std::vector<unsigned char> sensors_;  // that the cost reads
  Differentiator differentiator_;
  Pool pool_;
  std::vector<OwnedData> data_;       // one per thread
  std::vector<OwnedData> snapshots_;  // of steps that wait to be differentiated
  OwnedData rolling_;
  std::vector<Arena> arenas_, cost_arenas_;
  std::atomic<long long> nanoseconds_{0};
  std::mutex mutex_;
  std::optional<BatchFailure> failure_;
};

}  // namespace mujacobian

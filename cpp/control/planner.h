// The passes of an iLQR iteration that simulate or differentiate. Their threads and data persist
// from plan to plan.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "control/derivative.h"
#include "control/rollout.h"
#include "step/batch.h"
#include "step/pool.h"

namespace mujacobian {

// Derivatives of all knots. A and B of the last knot are not written, and neither are exact C and D
// of sensors that the cost does not read.
struct Expansion {
  Outputs lin;       // (T, ...)
  double* gradient;  // (T, nz), of the cost
  double* hessian;   // (T, nz, nz padded to whole lanes), of the cost
};

// A line search: rollouts with several step sizes.
struct Search {
  int count;
  const double* sizes;   // (count), in the order of preference
  const double* accept;  // (count); later rollouts are not needed after one with at most this cost
  double most;           // a rollout with a higher cost is aborted
  const double* states;  // (T, nq + nv + na), nominal trajectory
  const double* controls;  // (T, nu), nominal controls
  const double* steps;     // (T - 1, nu)
  const double* gains;     // (T - 1, nu, nx)
  const double* gaps;      // (T, nx), of the nominal trajectory; null: it is a simulation
};

// A sensor without a derivative at a knot. Rows of the cost that read it are left out there.
struct LeftOut {
  int knot, sensor;
  std::string element, reason;
};

// Derivatives along a trajectory, which its second derivatives need.
struct Curvature {
  const double* values;   // (T, nx), gradients of the value
  const double* hessian;  // (T, nz, padded), Hessian of the cost
  const double* C;        // (T, ns, nx)
  const double* D;        // (T, ns, nu)
};

class Planner {
 public:
  // With `may_refuse`, knots without an exact derivative are no failures: `refused` lists them.
  Planner(const void* model, CostRows cost, Backend backend, double eps, bool warm_start,
          int threads, bool may_refuse);

  const CostRows& cost() const { return cost_; }

  bool may_refuse() const { return may_refuse_; }
  void set_may_refuse(bool value) { may_refuse_ = value; }

  // Whether the cost reads each sensor.
  const std::vector<unsigned char>& sensors() const { return sensors_; }

  // Begin a plan of T knots, `shift` knots after the previous plan; a negative shift means that the
  // plans are unrelated.
  void begin(int T, int shift) { differentiator_.begin(T, shift); }

  // Simulate the trajectory of a policy and differentiate its knots at the same time. `feedback`
  // scales the gains of the policy. With `keep`, the steps of the knots are kept for
  // `add_curvature`, which is then faster.
  Rolled follow(const Task& task, const Policy& policy, double feedback, const Knots& knots,
                const Expansion& out, bool keep);

  // Simulate each knot from a given row (T, nstate) of mjSTATE_INTEGRATION, which includes the
  // control. Writes the gaps (T, nx) from each state to the end of the step before it. Returns the
  // cost, infinite if a step diverges.                                                  (ILQ-23)
  double shoot(const Task& task, const double* rows, const Knots& knots, double* gaps);

  // Differentiate knots that have been simulated. `keep` is the same.
  void differentiate(const Task& task, const Knots& knots, const Expansion& out, bool keep);

  // Write the Hessian of the cost plus the second derivatives of steps, sensors and functions of
  // rows to `curved`, for the knots that have been differentiated last. The gradients of the value
  // are zero at knots without a derivative, which are skipped. Analytic only.
  // (ILQ-13), (ILQ-14), (ILQ-21)
  void add_curvature(const Task& task, const Knots& knots, const Curvature& given, double* curved);

  // Run the rollouts of a line search. `knots` receives their trajectories, one after the other.
  void search(const Task& task, const Search& search, const Knots& knots, Rolled* results);

  // Returns the processor time, s, of derivatives since the last call of this function.
  double derivative_seconds();

  // Returns the first failure of the last call.
  const std::optional<BatchFailure>& failure() const { return failure_; }

  // Returns the knots of the last call that have no exact derivative, in any order.
  const std::vector<int>& refused() const { return refused_; }

  // Returns the failed knots, and the sensors that were left out, of the trajectory that was
  // differentiated last, in any order.
  const std::vector<int>& broken() const { return broken_; }
  const std::vector<LeftOut>& left_out() const { return left_out_; }

 private:
  // Write the derivatives of knot t. `here` is data after mj_step with the state of the knot
  // restored, or null, which starts from the recorded row of the knot.
  void differentiate_knot(const Task& task, const Knots& knots, const Expansion& out, int t,
                          int thread, const void* here);
  // The part of `add_curvature` that belongs to knot t; `next` (nx) is the gradient of the value
  // after its step, or null.
  void curve_knot(const Task& task, const Knots& knots, int t, int thread, const double* next,
                  const Curvature& given, double* curved);
  // Run `work(t, thread)` for the first `count` knots on all threads, and record the failures.
  template <class Work>
  void for_knots(int count, Work work);
  // Record the current exception as the failure at this index, unless an earlier one has failed.
  void fail(int index);
  // The same for knot t, which is refused if it has no exact derivative and `may_refuse` is true.
  void fail_knot(int t);
  // Write A, B, C and D of knot t. Sensors without a derivative are left out, unless `may_refuse`
  // is true. Returns the offsets of the rows of the cost, NaN for rows that read such a sensor;
  // they are in the arena of the thread.
  const double* differentiate_step(const Task& task, const Knots& knots, int t, int thread,
                                   const void* here, Outputs lin);
  // Returns the offsets of knot t without the rows that read one of these sensors.
  const double* leave_out(const Task& task, int t, const std::vector<int>& sensors, Arena& arena);
  // Forget the results of earlier knots, and prepare to keep `count` steps or none.
  void prepare_knots(int count, bool keep);
  // The step of knot t, or null if steps are not kept.
  KeptStep* kept_step(int t) { return keeps_ ? &kept_[t] : nullptr; }
  // Forget the failures of the previous call.
  void forget_failures();

  CostRows cost_;
  std::vector<unsigned char> sensors_;  // whether the cost reads each sensor
  Differentiator differentiator_;
  bool may_refuse_;
  std::exception_ptr unsupported_;  // why no knot has an exact derivative; null: some may have one
  Pool pool_;
  std::vector<OwnedData> data_;       // one per thread
  std::vector<OwnedData> snapshots_;  // copies of data for steps that wait for differentiation
  OwnedData rolling_;                 // of the simulation
  std::vector<Arena> arenas_, cost_arenas_;
  std::deque<KeptStep> kept_;  // per knot; empty until steps are kept for the first time
  bool keeps_ = false;
  std::atomic<long long> nanoseconds_{0};
  std::mutex mutex_;
  std::optional<BatchFailure> failure_;
  std::vector<int> refused_, broken_;
  std::vector<LeftOut> left_out_;
};

}  // namespace mujacobian

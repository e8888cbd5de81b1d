// Derivatives of knots by one of several methods. All except the analytic one serve comparisons.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "control/wasp.h"
#include "step/kept_step.h"

namespace mujacobian {

enum class Backend {
  kAnalytic,
  kOneSided,   // mjd_transitionFD with one-sided differences
  kCentral,    // mjd_transitionFD with central differences
  kWasp,       // control/wasp.h
  kIsolation,  // analytic A and B, one-sided C and D
};

// Returns the backend with this name, which Python uses. Throws std::invalid_argument.
Backend backend_kind(const std::string& name);

// Number of finite differences that entered a result of this process.
std::atomic<long long>& difference_count();

class Differentiator {
 public:
  // With `warm_start`, differences start the solver from its solution at the same state, otherwise
  // from the solution of the previous step.
  Differentiator(const void* model, Backend backend, double eps, bool warm_start);

  Backend backend() const { return backend_; }

  // Throws Unsupported if the backend does not support a feature of the model or one of these
  // sensors.
  void require(const unsigned char* sensors) const;

  // Begin a plan of T knots, `shift` knots after the beginning of the previous plan.
  void begin(int T, int shift);

  // Evaluate `data` at the state in `row` (mjSTATE_INTEGRATION), with `qacc` as the start of the
  // solver, which then converges at once.
  DataView forward_at(void* data, const double* row, const double* qacc) const;

  // Write derivatives at the state of `data`, for which mj_forward has run, and keep the step
  // unless `kept` is null. Analytic only.
  void transition_here(const void* data, const Outputs& out, KeptStep* kept, Arena& arena) const;

  // Write derivatives at knot t with the state in `row` (mjSTATE_INTEGRATION) and the acceleration
  // `qacc`. An analytic derivative keeps the step unless `kept` is null.
  void transition_at(void* data, const double* row, const double* qacc, int t, const Outputs& out,
                     KeptStep* kept, Arena& arena);

 private:
  void difference(void* data, bool central, const Outputs& out) const;

  const void* model_;
  Backend backend_;
  double eps_;
  bool warm_start_;
  std::unique_ptr<Wasp> wasp_;
};

}  // namespace mujacobian

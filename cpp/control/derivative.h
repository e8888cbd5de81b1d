// Derivatives of knots by one of several methods. All but the first are there to be compared with.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "control/wasp.h"
#include "step/transition.h"

namespace mujacobian {

enum class Backend {
  kAnalytic,
  kOneSided,  // mjd_transitionFD
  kCentred,   // the same, centred
  kWasp,
  kIsolation,  // analytic A, B; one-sided C, D
};

// By the name that Python uses; throws std::invalid_argument.
Backend backend_kind(const std::string& name);

// Finite differences that have entered a result of this process.
std::atomic<long long>& difference_count();

class Differentiator {
 public:
  // Differences start the solver from its solution at the same state if `warm_start`, else from
  // that of the step before.
  Differentiator(const void* model, Backend backend, double eps, bool warm_start);

  Backend backend() const { return backend_; }

  // Throws Unsupported if the model, or a sensor that is wanted, has something that the method does
  // not cover.
  void require(const unsigned char* sensors) const;

  // Of a plan of T knots that begins `shift` knots later than the last one.
  void begin(int T, int shift);

  // At a data that mj_forward has just left: analytic only.
  void transition_here(const void* data, const Outputs& out, Arena& arena) const;

  // At the state in `row` (mjSTATE_INTEGRATION) of knot t, where the acceleration is `qacc`.
  void transition_at(void* data, const double* row, const double* qacc, int t, const Outputs& out,
                     Arena& arena);

 private:
  void difference(void* data, bool centred, const Outputs& out) const;

  const void* model_;
  Backend backend_;
  double eps_;
  bool warm_start_;
  std::unique_ptr<Wasp> wasp_;
};

}  // namespace mujacobian

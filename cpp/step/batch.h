// Transitions at many states of one model, in parallel.
#pragma once

#include <exception>
#include <optional>

#include "step/transition.h"

namespace mujacobian {

// Where and why a batch stopped.
struct BatchFailure {
  int index;
  std::exception_ptr error;
};

// `states` (n, nstate) as mj_getState(FULLPHYSICS), `controls` (n, nu); the outputs have a leading
// axis of n. One mjData per thread. Results do not depend on the number of threads. Returns the
// failure with the lowest index, if any.
std::optional<BatchFailure> transition_batch(const void* model, const double* states, int nstate,
                                             const double* controls, int n, const Outputs& out,
                                             int threads);

}  // namespace mujacobian

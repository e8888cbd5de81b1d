// Derivatives of steps from many states of one model, in parallel.
#pragma once

#include <exception>
#include <optional>
#include <vector>

#include "step/transition.h"

namespace mujacobian {

// The item at which a batch failed, and its error.
struct BatchFailure {
  int index;
  std::exception_ptr error;
};

// Computes the transitions of n items. `states` is (n, nstate) as in mj_getState(FULLPHYSICS),
// `controls` is (n, nu), and the outputs have a leading axis of length n. Each thread has its own
// mjData. Results do not depend on the number of threads. Returns the failure with the lowest
// index, if any. If `refused` is not null, items without an exact derivative are no failures: their
// indices are written there in ascending order.
std::optional<BatchFailure> transition_batch(const void* model, const double* states, int nstate,
                                             const double* controls, int n, const Outputs& out,
                                             int threads, std::vector<int>* refused = nullptr);

}  // namespace mujacobian

// Derivatives of steps from many states of one model, in parallel.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// The item at which a batch failed, and its error.
struct BatchFailure {
  int index;
  std::exception_ptr error;
};

// n states and controls of one model: `states` is (n, nstate) as in mj_getState(FULLPHYSICS),
// `controls` is (n, nu).
struct BatchInputs {
  const void* model;
  const double* states;
  int nstate;
  const double* controls;
  int n;
};

// Differentiates item `index`, on whose mjData mj_forward has just run.
using BatchWork =
    std::function<void(const ModelView& m, const DataView& d, std::size_t index, Arena& arena)>;

// Calls `work` for all items. Each thread has its own mjData. Results do not depend on the number
// of threads. Returns the failure with the lowest index, if any. If `refused` is not null, items
// without an exact derivative are no failures: their indices are written there in ascending order.
std::optional<BatchFailure> run_batch(const BatchInputs& inputs, const BatchWork& work, int threads,
                                      std::vector<int>* refused = nullptr);

}  // namespace mujacobian

// The Hessian of a step and its factorization. Its pattern has the blocks of all elements of the
// model, and those of round segments that are near each other, which change with the state.
#pragma once

#include <memory>

#include "rods/problem.h"

namespace mujacobian::rods {

class Hessian {
 public:
  explicit Hessian(const Model& m);

  // Make the pattern contain the blocks of a step at q. Discards matrix and factorization if it did
  // not.
  void fit(const Problem& p, const State& q);

  SparseMatrix& matrix() { return *matrix_; }
  Factor& factor() { return *factor_; }

 private:
  void rebuild(const std::vector<std::pair<int, int>>& couplings);

  const Model& model_;
  const std::vector<std::pair<int, int>> elements_;  // couplings without segments
  std::unique_ptr<SparseMatrix> matrix_;
  std::unique_ptr<Factor> factor_;
};

}  // namespace mujacobian::rods

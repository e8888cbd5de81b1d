// The factored Hessian of the constraint problem.
#pragma once

#include "constraint/optimum.h"
#include "linear/lanes.h"

namespace mujacobian {

// The Hessian K = M + J^T H J of the constraint problem, assembled and factored by component: with
// the sparsity pattern of M if it has it, otherwise by blocks of trees, or dense.
class HessianFactor {
 public:
  HessianFactor(const ModelView& m, const DataView& d, const Topology& tree,
                const DofRows& residual, const Blocks& blocks, Arena& arena);

  // Assembles and factors K at the current Hessians of the blocks, unless they have not changed
  // since the last factorization. Only sliding contacts and rows that become active or inactive
  // change.
  void factor();

  // Returns the optimum with the factor of K.
  Optimum at(double* acc, double* force, double residual, double before) const {
    return {acc, force, residual, before, {packed_, inverse_}, dense_, sparse_};
  }

 private:
  int stride(int c) const { return round_to_lanes(residual_.components[c].nv); }

  static std::size_t hessian_size(const Block& b) {
    return static_cast<std::size_t>(b.count) * b.count;
  }

  // Copies the current Hessians. Returns false if the factor already belongs to them.
  bool remember();

  // Returns a plan for the elimination by trees, or null if too few blocks are zero.
  Elimination* plan_blocks(int c, Arena& arena);

  // Writes M to the matrix of blocks of component c.
  void start_sparse(int c);

  // Adds row i of J^T H J of the block to the matrix of blocks. The dof of the row belongs to tree
  // t.
  void add_sparse(const Block& b, int i, int t, const double* sum);

  // Writes M to the dense matrix of component c.
  void start_dense(int c);

  // sum += J^T H J
  void add(const Block& b, double* sum);

  // Adds the lower triangle of a matrix over the dofs of the block to K.
  void scatter(const Block& b, const double* sum);

  const ModelView& m_;
  const DataView& d_;
  const Topology& tree_;
  const DofRows& residual_;
  const Blocks& blocks_;
  double *packed_, *inverse_, *scratch_, *sum_;
  double* factored_;  // Hessians of all blocks at the last factorization, zero if not active
  double none_[kMaxRows * kMaxRows] = {};
  bool has_factor_ = false;
  int* places_;
  double** dense_;
  Elimination** sparse_;
  int* index_ = nullptr;  // index of each tree within its component
};

}  // namespace mujacobian

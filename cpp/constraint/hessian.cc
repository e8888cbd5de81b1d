#include "constraint/hessian.h"

#include <cstring>
#include <new>
#include <stdexcept>

#include "constraint/block_sum.h"
#include "constraint/force_derivative.h"
#include "linear/cholesky.h"
#include "linear/combine.h"

namespace mujacobian {
namespace {

// The factor by blocks is used if it has at most this share of the entries of the dense factor. The
// number was measured.
constexpr double kSparse = 0.5;

// Returns whether J^T H J has the sparsity pattern of M, because all dofs of the block are on one
// chain.
bool within_pattern(const ModelView& m, const Topology& tree, const Block& b) {
  if (b.n == 0) return true;
  int last = b.dofs[b.n - 1];
  for (int k = 0; k < b.n; k++) {
    if (!tree.is_ancestor(b.dofs[k], last)) return false;
    if (m.M_rownnz[b.dofs[k]] != tree.depth[b.dofs[k]] + 1) return false;
  }
  return true;
}

}  // namespace

HessianFactor::HessianFactor(const ModelView& m, const DataView& d, const Topology& tree,
                             const DofRows& residual, const Blocks& blocks, Arena& arena)
    : m_(m), d_(d), tree_(tree), residual_(residual), blocks_(blocks) {
  // memory of the factor with the pattern of M
  packed_ = arena.take<double>(m.nC);
  inverse_ = arena.take<double>(m.nv);
  dense_ = arena.zeros<double*>(residual.count);
  sparse_ = arena.zeros<Elimination*>(residual.count);

  // components in which K does not have the pattern of M
  int rows = 0;
  bool* coupled = arena.zeros<bool>(residual.count);
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (rows < b.count * b.stride) rows = b.count * b.stride;
    if (b.n && !within_pattern(m, tree, b)) coupled[residual.component[b.dofs[0]]] = true;
  }
  for (int c = 0; c < residual.count; c++) {
    if (!coupled[c]) continue;
    sparse_[c] = plan_blocks(c, arena);
    std::size_t n = residual.components[c].nv;
    if (!sparse_[c]) dense_[c] = arena.take<double>(n * stride(c));
  }

  // memory of the assembly
  std::size_t entries = 0;
  for (int k = 0; k < blocks.count; k++) entries += hessian_size(blocks.block[k]);
  factored_ = arena.zeros<double>(entries);
  scratch_ = arena.take<double>(rows);
  sum_ = arena.take<double>(largest_matrix(blocks));
  places_ = arena.take<int>(m.nv);
}

void HessianFactor::factor() {
  if (!remember()) return;

  // K = M + J^T H J
  std::memcpy(packed_, d_.M, m_.nC * sizeof(double));
  for (int c = 0; c < residual_.count; c++) {
    if (dense_[c]) start_dense(c);
    if (sparse_[c]) start_sparse(c);
  }
  sum_by_dofs(
      blocks_, 1, sum_, [this](const Block& b, double* sum) { add(b, sum); },
      [this](const Block& b, const double* sum) { scatter(b, sum); });

  // its factor
  bool ok = factor_inertia(m_, packed_, inverse_);
  for (int c = 0; c < residual_.count && ok; c++) {
    if (dense_[c]) ok = factor_dense(dense_[c], residual_.components[c].nv, stride(c));
    if (sparse_[c]) ok = sparse_[c]->factor();
  }
  if (!ok) {
    throw std::domain_error("the Hessian of the constraint problem is not positive definite");
  }
  has_factor_ = true;
}

bool HessianFactor::remember() {
  bool changed = !has_factor_;
  double* kept = factored_;
  for (int k = 0; k < blocks_.count; kept += hessian_size(blocks_.block[k++])) {
    const Block& b = blocks_.block[k];
    const std::size_t bytes = hessian_size(b) * sizeof(double);
    const double* now = b.active ? b.hessian : none_;
    if (has_factor_ && std::memcmp(kept, now, bytes) == 0) continue;
    std::memcpy(kept, now, bytes);
    changed = true;
  }
  return changed;
}

Elimination* HessianFactor::plan_blocks(int c, Arena& arena) {
  // the trees of the component
  const Component& part = residual_.components[c];
  if (!index_) index_ = arena.take<int>(m_.ntree);
  int* sizes = arena.take<int>(part.nv);
  int count = 0;
  visit_trees(m_, part.dofs, part.nv, [&](int t, int first, int last) {
    index_[t] = count;
    sizes[count++] = last - first;
  });
  if (count < 3) return nullptr;

  // trees that share a block touch
  bool* touching = arena.zeros<bool>(static_cast<std::size_t>(count) * count);
  for (int k = 0; k < blocks_.count; k++) {
    const Block& b = blocks_.block[k];
    if (b.n == 0 || residual_.component[b.dofs[0]] != c) continue;
    visit_trees(m_, b.dofs, b.n, [&](int t, int, int) {
      visit_trees(m_, b.dofs, b.n,
                  [&](int s, int, int) { touching[index_[t] * count + index_[s]] = true; });
    });
  }
  Elimination plan(count, sizes, touching, arena);
  if (2.0 * plan.entries() > kSparse * part.nv * part.nv) return nullptr;
  plan.allocate(arena);
  return new (arena.take<Elimination>(1)) Elimination(plan);
}

void HessianFactor::start_sparse(int c) {
  const Component& part = residual_.components[c];
  sparse_[c]->clear();
  visit_trees(m_, part.dofs, part.nv, [&](int t, int first, int last) {
    const int adr = part.dofs[first];
    Elimination::Place to = sparse_[c]->block(index_[t], index_[t]);
    for (int r = 0; r < last - first; r++) {
      for (int p = m_.M_rowadr[adr + r], end = p + m_.M_rownnz[adr + r]; p < end; p++) {
        to.entry[r * to.row_step + m_.M_colind[p] - adr] = d_.M[p];
      }
    }
  });
}

void HessianFactor::add_sparse(const Block& b, int i, int t, const double* sum) {
  const Elimination& to = *sparse_[residual_.component[b.dofs[0]]];
  visit_trees(m_, b.dofs, b.n, [&](int s, int first, int last) {
    if (first > i) return;
    Elimination::Place at = to.block(index_[t], index_[s]);
    double* row = at.entry + (b.dofs[i] - m_.tree_dofadr[t]) * at.row_step;
    for (int j = first; j < last && j <= i; j++) {
      row[(b.dofs[j] - m_.tree_dofadr[s]) * at.column_step] += sum[j];
    }
  });
}

void HessianFactor::start_dense(int c) {
  const Component& part = residual_.components[c];
  double* a = dense_[c];
  std::memset(a, 0, static_cast<std::size_t>(part.nv) * stride(c) * sizeof(double));
  for (int i = 0; i < part.nv; i++) {
    int dof = part.dofs[i];
    int first = m_.M_rowadr[dof], last = first + m_.M_rownnz[dof];
    for (int p = first; p < last; p++) {
      a[i * stride(c) + residual_.column[m_.M_colind[p]]] = d_.M[p];
    }
  }
}

void HessianFactor::add(const Block& b, double* sum) {
  if (b.n == 1 && b.count == 1) {
    sum[0] += b.J[0] * (b.hessian[0] * b.J[0]);
    return;
  }
  multiply_hessian(b, 1, b.J, scratch_);
  combine_rows<true>(sum, b.n, {b.J, 1, b.stride}, scratch_, b.count, b.stride);
}

void HessianFactor::scatter(const Block& b, const double* sum) {
  const int c = residual_.component[b.dofs[0]];
  for (int j = 0; j < b.n; j++) {
    places_[j] = dense_[c] ? residual_.column[b.dofs[j]] : tree_.depth[b.dofs[j]];
  }
  for (int i = 0; i < b.n; i++) {
    const double* from = sum + i * b.stride;
    if (sparse_[c]) {
      add_sparse(b, i, m_.dof_treeid[b.dofs[i]], from);
      continue;
    }
    double* row = dense_[c] ? dense_[c] + places_[i] * stride(c) : packed_ + m_.M_rowadr[b.dofs[i]];
    for (int j = 0; j <= i; j++) row[places_[j]] += from[j];
  }
}

void multiply_inertia(const ModelView& m, const DataView& d, const double* x, double* y) {
  for (int i = 0; i < m.nv; i++) {
    int first = m.M_rowadr[i], last = first + m.M_rownnz[i] - 1;
    y[i] += d.M[last] * x[i];
    for (int p = first; p < last; p++) {
      int j = m.M_colind[p];
      y[i] += d.M[p] * x[j];
      y[j] += d.M[p] * x[i];
    }
  }
}

void solve_hessian(const ModelView& m, const Topology& tree, const Optimum& optimum,
                   const Component& part, int index, int first, int last) {
  // dense, by blocks, or with the pattern of M
  if (optimum.dense[index]) {
    return solve_dense(optimum.dense[index], part.nv, round_to_lanes(part.nv), part.x, part.stride,
                       first, last);
  }
  if (optimum.sparse[index]) return optimum.sparse[index]->solve(part.x, part.stride, first, last);
  visit_trees(m, part.dofs, part.nv, [&](int, int i, int end) {
    solve_inertia(m, tree, optimum.tree, part.dofs[i], end - i,
                  part.x + static_cast<std::ptrdiff_t>(i) * part.stride, part.stride, first, last);
  });
}

void solve_hessian(const ModelView& m, const Topology& tree, const Optimum& optimum,
                   const DofRows& residual, double* x, Arena& arena) {
  double* rows = arena.zeros<double>(kLanes * m.nv);
  for (int c = 0; c < residual.count; c++) {
    Component part = residual.components[c];
    part.x = rows, part.stride = kLanes;
    for (int i = 0; i < part.nv; i++) rows[kLanes * i] = x[part.dofs[i]];
    solve_hessian(m, tree, optimum, part, c, 0, 1);
    for (int i = 0; i < part.nv; i++) x[part.dofs[i]] = rows[kLanes * i];
  }
}

void fill_hessian(const ModelView& m, const DataView& d, const Blocks& blocks, double* K) {
  // M
  const std::ptrdiff_t nv = m.nv;
  std::memset(K, 0, nv * nv * sizeof(double));
  for (int i = 0; i < m.nv; i++) {
    for (int p = m.M_rowadr[i]; p < m.M_rowadr[i] + m.M_rownnz[i]; p++) {
      K[i * nv + m.M_colind[p]] = K[m.M_colind[p] * nv + i] = d.M[p];
    }
  }
  // J^T H J
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    for (int r = 0; r < b.count; r++)
      for (int s = 0; s < b.count; s++) {
        double h = b.hessian[r * b.count + s];
        for (int i = 0; h != 0 && i < b.n; i++)
          for (int j = 0; j < b.n; j++) {
            K[b.dofs[i] * nv + b.dofs[j]] += b.J[r * b.stride + i] * h * b.J[s * b.stride + j];
          }
      }
  }
}

}  // namespace mujacobian

#include "constraint/optimum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "constraint/exact_diagonal.h"
#include "constraint/force.h"
#include "constraint/force_derivative.h"
#include "constraint/rounding.h"
#include "layout/enums.h"
#include "layout/text.h"
#include "linear/cholesky.h"
#include "linear/combine.h"
#include "linear/lanes.h"

namespace mujacobian {
namespace {

// Relative residuals at which the search ends, and at which it counts as converged if it cannot
// continue. Rounding leaves about 1e-14. The error of the derivative is about as large as the
// residual.
constexpr double kConverged = 1e-10, kTooFar = 1e-9;
constexpr int kMaxSteps = 50;
constexpr int kPatience = 5;  // number of steps after which the residual is compared with rounding
// After a step that reduces the residual to this share, the next step uses the same factor.
constexpr double kFast = 0.01;
// The line search ends when the slope is this share of the first one, or after so many bisections.
constexpr double kSlope = 0.01;
constexpr int kMaxHalvings = 40;
// The factor by blocks is used if it has at most this share of the entries of the dense factor. The
// number was measured.
constexpr double kSparse = 0.5;

// Returns the size of a matrix (n, n) with the stride of the block.
std::size_t matrix_size(const Block& b) { return static_cast<std::size_t>(b.n) * b.stride; }

std::size_t largest_matrix(const Blocks& blocks) {
  std::size_t size = 0;
  for (int k = 0; k < blocks.count; k++) size = std::max(size, matrix_size(blocks.block[k]));
  return size;
}

// A point of the search, with the constraint forces and the gradient of the cost at `acc`.
struct NewtonIterate {
  double *acc, *force, *gradient;
  double residual;
};

// Evaluates all blocks at p.acc, and sets the forces, the gradient and the relative residual.
void evaluate_all(const ModelView& m, const DataView& d, Blocks& blocks, NewtonIterate& p) {
  // J^T f
  std::memset(p.force, 0, m.nv * sizeof(double));
  std::memset(p.gradient, 0, m.nv * sizeof(double));
  for (int k = 0; k < blocks.count; k++) {
    Block& b = blocks.block[k];
    evaluate(m, d, p.acc, b);
    if (!b.active) continue;
    for (int r = 0; r < b.count; r++)
      for (int i = 0; i < b.n; i++) p.force[b.dofs[i]] += b.J[r * b.stride + i] * b.force[r];
  }
  // M a - qfrc_smooth - J^T f
  multiply_inertia(m, d, p.acc, p.gradient);
  double scale = std::fmax(largest(p.gradient, m.nv), largest(p.force, m.nv));
  scale = std::fmax(scale, largest(d.qfrc_smooth, m.nv));
  for (int i = 0; i < m.nv; i++) p.gradient[i] -= d.qfrc_smooth[i] + p.force[i];
  p.residual = scale > 0 ? largest(p.gradient, m.nv) / scale : 0;
}

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

// Moves q to the minimum of the cost along p - length step, by bisection. The cost is convex, so
// its slope -gradient . step changes sign once. On entry q is at length 1.
template <class F>
void descend_to_lowest(int nv, const double* step, const NewtonIterate& p, const NewtonIterate& q,
                       F descend) {
  auto slope = [&](const NewtonIterate& at) {
    double sum = 0;
    for (int i = 0; i < nv; i++) sum -= at.gradient[i] * step[i];
    return sum;
  };
  const double enough = kSlope * std::abs(slope(p));
  double low = 0, high = 1, here = slope(q);
  for (int k = 0; k < kMaxHalvings && here > enough; k++) {
    double middle = (low + high) / 2;
    descend(middle);
    here = slope(q);
    (here > 0 ? high : low) = middle;
    here = std::abs(here);
  }
}

// Sums matrices over the dofs of blocks. Consecutive blocks with the same dofs, such as contacts
// between the same bodies, share one sum of `matrices` (n, n) matrices with the stride of the
// block. The function calls add(block, sum) for each active block, and scatter(block, sum) after
// the last block of each sum.
template <class Add, class Scatter>
void sum_by_dofs(const Blocks& blocks, int matrices, double* sum, Add add, Scatter scatter) {
  const Block* last = nullptr;
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.active || b.n == 0) continue;
    const bool same =
        last && last->n == b.n && std::memcmp(last->dofs, b.dofs, b.n * sizeof(int)) == 0;
    if (!same) {
      if (last) scatter(*last, sum);
      std::memset(sum, 0, matrices * matrix_size(b) * sizeof(double));
    }
    add(b, sum);
    last = &b;
  }
  if (last) scatter(*last, sum);
}

// The Hessian K = M + J^T H J of the constraint problem, assembled and factored by component: with
// the sparsity pattern of M if it has it, otherwise by blocks of trees, or dense.
class HessianFactor {
 public:
  HessianFactor(const ModelView& m, const DataView& d, const Topology& tree,
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

  // Assembles and factors K at the current Hessians of the blocks, unless they have not changed
  // since the last factorization. Only sliding contacts and rows that become active or inactive
  // change.
  void factor() {
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

  // Returns the optimum at p, with the factor of K.
  Optimum at(const NewtonIterate& p, double before) const {
    return {p.acc, p.force, p.residual, before, {packed_, inverse_}, dense_, sparse_};
  }

 private:
  int stride(int c) const { return round_to_lanes(residual_.components[c].nv); }

  static std::size_t hessian_size(const Block& b) {
    return static_cast<std::size_t>(b.count) * b.count;
  }

  // Copies the current Hessians. Returns false if the factor already belongs to them.
  bool remember() {
    bool changed = !has_factor_;
    double* kept = factored_;
    for (int k = 0; k < blocks_.count; kept += hessian_size(blocks_.block[k++])) {
      const Block& b = blocks_.block[k];
      const std::size_t bytes = hessian_size(b) * sizeof(double);
      const double* now = b.active ? b.hessian : none_;
      if (std::memcmp(kept, now, bytes) == 0) continue;
      std::memcpy(kept, now, bytes);
      changed = true;
    }
    return changed;
  }

  // Returns a plan for the elimination by trees, or null if too few blocks are zero.
  Elimination* plan_blocks(int c, Arena& arena) {
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

  // Writes M to the matrix of blocks of component c.
  void start_sparse(int c) {
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

  // Adds row i of J^T H J of the block to the matrix of blocks. The dof of the row belongs to tree
  // t.
  void add_sparse(const Block& b, int i, int t, const double* sum) {
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

  // Writes M to the dense matrix of component c.
  void start_dense(int c) {
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

  // sum += J^T H J, lower triangle only
  void add(const Block& b, double* sum) {
    multiply_hessian(b, 1, b.J, scratch_);
    for (int i = 0; i < b.n; i++) {
      combine_rows<true>(sum + i * b.stride, b.J + i, b.stride, 1, scratch_, b.count, b.stride,
                         i + 1);
    }
  }

  // Adds the lower triangle of a matrix over the dofs of the block to K.
  void scatter(const Block& b, const double* sum) {
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
      double* row =
          dense_[c] ? dense_[c] + places_[i] * stride(c) : packed_ + m_.M_rowadr[b.dofs[i]];
      for (int j = 0; j <= i; j++) row[places_[j]] += from[j];
    }
  }

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

}  // namespace

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

Optimum find_optimum(const ModelView& m, const DataView& d, const Topology& tree,
                     const DofRows& residual, Blocks& blocks, Arena& arena) {
  // p: current point, q: next point
  NewtonIterate p{arena.take<double>(m.nv), arena.take<double>(m.nv), arena.take<double>(m.nv), 0};
  NewtonIterate q{arena.take<double>(m.nv), arena.take<double>(m.nv), arena.take<double>(m.nv), 0};
  double* step = arena.take<double>(m.nv);
  HessianFactor hessian(m, d, tree, residual, blocks, arena);

  // start from MuJoCo's qacc, which is the optimum if its solver has converged
  std::memcpy(p.acc, d.qacc, m.nv * sizeof(double));
  evaluate_all(m, d, blocks, p);
  const double before = p.residual;
  hessian.factor();
  bool done = p.residual <= kConverged, old_factor = false;
  for (int k = 0; k < kMaxSteps && !done; k++) {
    // full Newton step
    std::memcpy(step, p.gradient, m.nv * sizeof(double));
    solve_hessian(m, tree, hessian.at(p, before), residual, step, arena);
    auto descend = [&](double length) {
      for (int i = 0; i < m.nv; i++) q.acc[i] = p.acc[i] - length * step[i];
      evaluate_all(m, d, blocks, q);
    };
    descend(1);

    // no improvement with an old factor: try again with a new one
    if (!(q.residual < p.residual) && old_factor) {
      evaluate_all(m, d, blocks, p);
      hessian.factor();
      old_factor = false;
      continue;
    }

    // no improvement with a new factor: line search
    if (!(q.residual < p.residual)) descend_to_lowest(m.nv, step, p, q, descend);

    // still no improvement: end at p if its residual is small or rounding
    if (!(q.residual < p.residual)) {
      evaluate_all(m, d, blocks, p);
      done = p.residual <= kTooFar || is_rounding(m, d, blocks, p.acc, p.gradient, arena);
      if (done) break;
      evaluate_all(m, d, blocks, q);
    }

    // accept the step, and factor again unless it was very good
    old_factor = q.residual <= kFast * p.residual;
    std::swap(p, q);
    if (!old_factor) hessian.factor();
    done = p.residual <= kConverged ||
           (k >= kPatience && is_rounding(m, d, blocks, p.acc, p.gradient, arena));
  }
  if (!done && !(p.residual < kTooFar)) {
    throw std::domain_error(
        "the constraint solver stopped too far from the optimum to be polished (relative "
        "residual " +
        in_words(p.residual) +
        "): raise opt.iterations and opt.ls_iterations, or lower opt.tolerance");
  }

  // derivatives are solved with the factor at the optimum
  hessian.factor();
  require_resolved(m, d, blocks, arena);
  return hessian.at(p, before);
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

void add_blocks(const ModelView& m, const DataView& d, const Topology& tree, const Blocks& blocks,
                const double* acc, const DofRows& residual, Arena& arena) {
  if (blocks.count == 0) return;
  // scratch memory for the derivative of one block
  const BlockMotion motion = block_motion(m, d, blocks, acc, arena);
  int widest = 0;
  for (int k = 0; k < blocks.count; k++) {
    if (blocks.block[k].stride > widest) widest = blocks.block[k].stride;
  }
  double* all = arena.take<double>(2 * kMaxRows * widest + widest);
  int* columns = arena.take<int>(m.nv);

  // sum += d(J^T f)/dq and d(J^T f)/dv of one block, over its dofs
  auto add = [&](const Block& b, double* sum_q) {
    const int size = b.count * b.stride;
    BlockChange change{all, all + size, all + 2 * size, sum_q};
    std::memset(all, 0, (2 * size + b.stride) * sizeof(double));
    differentiate(m, d, b, motion, change, arena);
    ForceSlopes& force = blocks.slopes[&b - blocks.block];
    force = {arena.take<double>(size), arena.take<double>(size)};
    force_change(b, change, force.q, force.v);
    double* sum_v = sum_q + matrix_size(b);
    for (int i = 0; i < b.n; i++) {
      const int at = i * b.stride;
      combine_rows<true>(sum_q + at, b.J + i, b.stride, 1, force.q, b.count, b.stride);
      combine_rows<true>(sum_v + at, b.J + i, b.stride, 1, force.v, b.count, b.stride);
    }
  };
  // add a sum to the rows of the residual
  auto scatter = [&](const Block& b, const double* sum_q) {
    const double* sum_v = sum_q + matrix_size(b);
    const int nv = residual.components[residual.component[b.dofs[0]]].nv;
    for (int k = 0; k < b.n; k++) columns[k] = residual.column[b.dofs[k]];
    for (int i = 0; i < b.n; i++) {
      double* row = residual.row[b.dofs[i]];
      for (int k = 0; k < b.n; k++) {
        row[columns[k]] += sum_q[i * b.stride + k];
        row[columns[k] + nv] += sum_v[i * b.stride + k];
      }
    }
  };
  sum_by_dofs(blocks, 2, arena.take<double>(2 * largest_matrix(blocks)), add, scatter);
  if (m.opt.enableflags & enable::kDiagExact) {
    add_exact_diagonal(m, d, tree, blocks, residual, arena);
  }
}

}  // namespace mujacobian

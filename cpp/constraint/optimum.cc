#include "constraint/optimum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "constraint/block_sum.h"
#include "constraint/exact_diagonal.h"
#include "constraint/force.h"
#include "constraint/force_derivative.h"
#include "constraint/hessian.h"
#include "constraint/rounding.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/text.h"
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

}  // namespace

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
  bool done = p.residual <= kConverged, old_factor = false;
  auto certainty = [&] { return gradient_certainty(m, d, blocks, p.acc, p.gradient, arena); };
  if (!done) hessian.factor();
  for (int k = 0; k < kMaxSteps && !done; k++) {
    // full Newton step
    std::memcpy(step, p.gradient, m.nv * sizeof(double));
    solve_hessian(m, tree, hessian.at(p.acc, p.force, p.residual, before), residual, step, arena);
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
      done = p.residual <= kTooFar || certainty() == Certainty::kRounding;
      if (done) break;
      evaluate_all(m, d, blocks, q);
    }

    // accept the step, and factor again unless it was very good
    old_factor = q.residual <= kFast * p.residual;
    std::swap(p, q);
    if (!old_factor) hessian.factor();
    done = p.residual <= kConverged || (k >= kPatience && certainty() == Certainty::kRounding);
  }
  if (!done && !(p.residual < kTooFar)) {
    if (certainty() != Certainty::kUnknownForces) {
      throw std::domain_error(
          "the constraint solver stopped too far from the optimum to be polished (relative "
          "residual " +
          in_words(p.residual) +
          "): raise opt.iterations and opt.ls_iterations, or lower opt.tolerance");
    }
    mark_unknown_forces(m, d, blocks, p.acc);
  }

  // derivatives are solved with the factor at the optimum
  hessian.factor();
  require_resolved(m, d, blocks, arena);
  return hessian.at(p.acc, p.force, p.residual, before);
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
    const Coefficients transposed{b.J, 1, b.stride};
    combine_rows<true>(sum_q, b.n, transposed, force.q, b.count, b.stride);
    combine_rows<true>(sum_v, b.n, transposed, force.v, b.count, b.stride);
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

#include "constraint/rounding.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace mujacobian {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
// A gradient that is smaller than this share of its summands is their rounding error.
constexpr double kRounding = 1e-13;
// Limits of rounding errors: of the forces of a block, relative, and of a derivative of velocities
constexpr double kUnresolved = 1e-8, kHidden = 1e-8;

// size += |M| |x|
void add_inertia_sizes(const ModelView& m, const DataView& d, const double* x, double* size) {
  for (int i = 0; i < m.nv; i++) {
    int first = m.M_rowadr[i], last = first + m.M_rownnz[i] - 1;
    size[i] += std::abs(d.M[last] * x[i]);
    for (int p = first; p < last; p++) {
      int j = m.M_colind[p];
      size[i] += std::abs(d.M[p] * x[j]);
      size[j] += std::abs(d.M[p] * x[i]);
    }
  }
}

}  // namespace

double largest(const double* x, int n) {
  double result = 0;
  for (int i = 0; i < n; i++) {
    // unlike std::fmax, this is not a function call; both ignore NaN
    const double size = std::abs(x[i]);
    result = size > result ? size : result;
  }
  return result;
}

bool is_rounding(const ModelView& m, const DataView& d, const Blocks& blocks, const double* acc,
                 const double* gradient, Arena& arena, const Block** lost) {
  *lost = nullptr;
  // size of the summands of the gradient: qfrc_smooth and M a
  double* size = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) size[i] = std::abs(d.qfrc_smooth[i]);
  add_inertia_sizes(m, d, acc, size);
  for (int k = 0; k < blocks.count; k++) {
    // and J^T f, with a bound of the summands of f
    const Block& b = blocks.block[k];
    double largest_aref = 0;
    for (int e = 0; b.row >= 0 && e < b.edges; e++)
      largest_aref = std::fmax(largest_aref, std::abs(d.efc_aref[b.row + e]));
    double sum = 0;
    for (int r = 0; r < b.count; r++) {
      double moved = b.edges == b.count || r == 0 ? largest_aref : 0;
      for (int i = 0; i < b.n; i++) moved += std::abs(b.J[r * b.stride + i] * acc[b.dofs[i]]);
      sum += std::sqrt(b.hessian[r * b.count + r]) * moved;
    }
    for (int r = 0; r < b.count; r++) {
      const double force = std::sqrt(b.hessian[r * b.count + r]) * sum;
      if (kEpsilon * force > kUnresolved * largest(b.force, b.count)) *lost = &b;
      for (int i = 0; i < b.n; i++) size[b.dofs[i]] += std::abs(b.J[r * b.stride + i]) * force;
    }
  }
  for (int i = 0; i < m.nv; i++) {
    if (std::abs(gradient[i]) <= kRounding * size[i]) continue;
    *lost = nullptr;
    return false;
  }
  return !*lost;
}

void require_resolved(const ModelView& m, const DataView& d, const Blocks& blocks, Arena& arena) {
  // a quick test with the sum of all forces and the smallest inertia
  auto size = [](const Block& b) { return b.active ? largest(b.force, b.count) : 0; };
  double total = 0, least = INFINITY;
  for (int k = 0; k < blocks.count; k++) total += size(blocks.block[k]);
  auto diagonal = [&](int i) { return d.M[m.M_rowadr[i] + m.M_rownnz[i] - 1]; };
  for (int i = 0; i < m.nv; i++) least = std::fmin(least, diagonal(i));
  const double share = m.opt.timestep * kEpsilon;
  if (share * total <= kHidden * least) return;

  // the forces on each dof, and its diagonal entry of K
  double* load = arena.zeros<double>(m.nv);
  double* inertia = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) inertia[i] = diagonal(i);
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    for (int i = 0; b.active && i < b.n; i++) {
      load[b.dofs[i]] += size(b);
      for (int r = 0; r < b.count; r++)
        for (int c = 0; c < b.count; c++) {
          inertia[b.dofs[i]] +=
              b.J[r * b.stride + i] * b.hessian[r * b.count + c] * b.J[c * b.stride + i];
        }
    }
  }
  for (int i = 0; i < m.nv; i++) {
    if (share * load[i] <= kHidden * inertia[i]) continue;
    char text[200];
    std::snprintf(text, sizeof text,
                  "constraint forces of %.0e hide the motion of dof %d in their rounding: do its "
                  "rows push bodies that cannot move that way?",
                  load[i], i);
    throw std::domain_error(text);
  }
}

}  // namespace mujacobian

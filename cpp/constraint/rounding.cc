#include "constraint/rounding.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "layout/enums.h"
#include "layout/text.h"

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

// bound[r] = a bound of the summands of force r, sqrt(H_rr) sum_c sqrt(H_cc) (|J| |a| + |aref|)_c
void bound_summands(const DataView& d, const Block& b, const double* acc, double* bound) {
  double largest_aref = 0;
  for (int e = 0; b.row >= 0 && e < b.edges; e++)
    largest_aref = std::fmax(largest_aref, std::abs(d.efc_aref[b.row + e]));
  double sum = 0;
  for (int r = 0; r < b.count; r++) {
    double moved = b.edges == b.count || r == 0 ? largest_aref : 0;
    for (int i = 0; i < b.n; i++) moved += std::abs(b.J[r * b.stride + i] * acc[b.dofs[i]]);
    sum += std::sqrt(b.hessian[r * b.count + r]) * moved;
  }
  for (int r = 0; r < b.count; r++) bound[r] = std::sqrt(b.hessian[r * b.count + r]) * sum;
}

bool is_known(const Block& b, const double* bound) {
  return kEpsilon * largest(bound, b.count) <= kUnresolved * largest(b.force, b.count);
}

// Whether the Hessian of a block depends on the direction of its force.
bool is_sliding_cone(const Block& b) {
  if (b.type != constraint::kContactElliptic) return false;
  for (int r = 1; r < b.count; r++) {
    if (b.hessian[r] != 0) return true;
  }
  return false;
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

Certainty gradient_certainty(const ModelView& m, const DataView& d, const Blocks& blocks,
                             const double* acc, const double* gradient, Arena& arena) {
  // size of the summands of the gradient: qfrc_smooth, M a, and J^T f with the summands of f
  double* size = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) size[i] = std::abs(d.qfrc_smooth[i]);
  add_inertia_sizes(m, d, acc, size);
  bool known = true;
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    double bound[kMaxRows];
    bound_summands(d, b, acc, bound);
    for (int r = 0; r < b.count; r++)
      for (int i = 0; i < b.n; i++) size[b.dofs[i]] += std::abs(b.J[r * b.stride + i]) * bound[r];
    known &= is_known(b, bound);
  }
  for (int i = 0; i < m.nv; i++) {
    if (std::abs(gradient[i]) > kRounding * size[i]) return Certainty::kGradient;
  }
  return known ? Certainty::kRounding : Certainty::kUnknownForces;
}

void mark_unknown_forces(const ModelView& m, const DataView& d, Blocks& blocks, const double* acc) {
  for (int k = 0; k < blocks.count; k++) {
    Block& b = blocks.block[k];
    double bound[kMaxRows];
    bound_summands(d, b, acc, bound);
    if (is_known(b, bound)) continue;
    b.unknown = largest(bound, b.count);
    const bool is_lost = kEpsilon * b.unknown >= largest(b.force, b.count);
    if (!is_lost && !is_sliding_cone(b)) continue;
    throw std::domain_error(row_name(m, b) +
                            " has such a small regularization (R = " + in_words(d.efc_R[b.row]) +
                            ") that its force is lost to rounding, and the derivative with it");
  }
}

void require_resolved(const ModelView& m, const DataView& d, const Blocks& blocks, Arena& arena) {
  // a quick test with the sum of all forces and the smallest inertia
  auto size = [](const Block& b) {
    return b.active ? std::fmax(largest(b.force, b.count), b.unknown) : 0;
  };
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

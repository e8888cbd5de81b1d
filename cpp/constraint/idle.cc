#include "constraint/idle.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "constraint/force.h"
#include "constraint/rounding.h"
#include "contact/collider.h"

namespace mujacobian {
namespace {

// An entry of J that is smaller than this share of its summands is their rounding error.
constexpr double kRounding = 1e-12;
// A larger entry is never a rounding error. This quick test excludes most blocks.
constexpr double kCertain = 1e-6;
// The rounding error of J^T f may be this share of the largest force.
constexpr double kNegligible = 1e-9;
// Change of a velocity in one step that is negligible.
constexpr double kStill = 1e-12;

// Returns the size of the summands of J: the largest axis of a dof, about the contact.
double scale_of(const Block& b) {
  double largest_axis = 0;
  for (int k = 0; k < b.n; k++) {
    const double arm = std::fmax(norm(b.chain->offset[0]), norm(b.chain->offset[1]));
    const Motion& axis = b.chain->axis[k];
    const double size = norm(axis.lin) + (1 + arm) * norm(axis.ang);
    largest_axis = std::fmax(largest_axis, size);
  }
  return largest_axis;
}

// Returns whether the derivative of J is zero, up to `limit`.
bool stays_zero(const ModelView& m, const DataView& d, const Blocks& blocks, const Block& b,
                double limit, Arena& arena) {
  double* y = arena.zeros<double>(m.nv);
  for (int k = 0; k < b.n; k++) {
    y[b.dofs[k]] = 1;
    const double* change = jacobian_change(m, d, blocks, b, y, arena);
    if (largest(change, b.count * b.stride) > limit) return false;
    y[b.dofs[k]] = 0;
  }
  return true;
}

// Returns whether a block is an idle contact.
bool is_idle(const ModelView& m, const DataView& d, const Blocks& blocks, Block& b, Arena& arena) {
  if (b.n == 0 || !b.geometry) return false;
  const int size = b.count * b.stride;
  for (int k = 0; k < size; k++) {
    if (std::abs(b.J[k]) > kCertain) return false;
  }
  const double limit = kRounding * scale_of(b);
  // a pivot that no dof moves relative to its geoms stays one; spin and rolls turn, however
  if (b.geometry->pivot) return b.count <= 3 && largest(b.J, size) <= limit;
  if (b.geometry->refusal) return false;
  std::memset(b.force, 0, sizeof b.force);  // not set yet; rho does not depend on it
  return largest(b.J, size) <= limit && stays_zero(m, d, blocks, b, limit, arena);
}

// Returns the differences between MuJoCo's constraint forces on the dofs in `touched` and the
// forces of the other blocks, or null if all are negligible.
const double* find_noise(const ModelView& m, const DataView& d, Blocks& blocks, const bool* touched,
                         Arena& arena) {
  solve_again(d);
  double* force = arena.zeros<double>(m.nv);
  for (int k = 0; k < blocks.count; k++) {
    Block& b = blocks.block[k];
    evaluate(m, d, d.qacc, b);
    for (int r = 0; r < b.count; r++)
      for (int i = 0; i < b.n; i++) force[b.dofs[i]] += b.J[r * b.stride + i] * b.force[r];
  }
  const double scale = std::fmax(largest(d.qfrc_smooth, m.nv), largest(force, m.nv));
  for (int i = 0; i < m.nv; i++) force[i] = touched[i] ? d.qfrc_constraint[i] - force[i] : 0;
  return largest(force, m.nv) > kNegligible * scale ? force : nullptr;
}

}  // namespace

const double* remove_idle(const ModelView& m, const DataView& d, Blocks& blocks, Arena& arena) {
  bool* touched = nullptr;
  for (int k = 0; k < blocks.count; k++) {
    Block& b = blocks.block[k];
    if (!is_idle(m, d, blocks, b, arena)) continue;
    if (!touched) touched = arena.zeros<bool>(m.nv);
    for (int i = 0; i < b.n; i++) touched[b.dofs[i]] = true;
    b.idle = true;
    b.n = b.stride = 0;
  }
  return touched ? find_noise(m, d, blocks, touched, arena) : nullptr;
}

void require_still(const ModelView& m, const double* noise, const double* moved) {
  for (int i = 0; i < m.nv; i++) {
    if (m.opt.timestep * std::abs(moved[i]) > kStill) refuse_noise(i, noise[i]);
  }
}

void refuse_noise(int dof, double force) {
  char text[200];
  std::snprintf(text, sizeof text,
                "rounding of huge constraint forces moves dof %d by %.0e: a contact pushes a body "
                "that cannot move that way, and the step has no derivative",
                dof, std::abs(force));
  throw std::domain_error(text);
}

}  // namespace mujacobian

#include "constraint/friction_block.h"

#include "constraint/force.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "tree/inertia.h"

namespace mujacobian {
namespace {

// MuJoCo's lower bound of the diagonal of A in a contact
constexpr double kMinDiagonal = 1e-10;

// Lists all dofs of the trees that the block moves, where M^-1 J^T is not zero. Returns their
// number.
int reach(const ModelView& m, const Block& b, int* dofs) {
  int n = 0, last = -1;
  for (int k = 0; k < b.n; k++) {
    int t = m.dof_treeid[b.dofs[k]];
    if (t == last) continue;
    bool known = false;
    for (int i = 0; i < n && !known; i++) known = m.dof_treeid[dofs[i]] == t;
    last = t;
    for (int i = 0; !known && i < m.tree_dofnum[t]; i++) dofs[n++] = m.tree_dofadr[t] + i;
  }
  return n;
}

bool is_zero(const double* x, int n) {
  for (int k = 0; k < n; k++)
    if (x[k] != 0) return false;
  return true;
}

[[noreturn]] void throw_heavy() {
  throw Unsupported("option noslip_iterations",
                    "friction on an inertia so large that MuJoCo replaces it");
}

// Computes z and A of a friction block. `x` is scratch memory of nv zeros, and zero again on
// return.
void set_mobility(const ModelView& m, const DataView& d, FrictionBlock& friction, double* x,
                  Arena& arena) {
  const Block& b = *friction.block;
  int* dofs = arena.take<int>(m.nv);
  friction.reach = reach(m, b, dofs);
  friction.dofs = dofs;
  friction.z = arena.take<double>(friction.count * friction.reach);
  for (int r = 0; r < friction.count; r++) {
    // x = M^-1 J_r^T, and column r of A
    for (int k = 0; k < b.n; k++) x[b.dofs[k]] = row_of(friction, r)[k];
    solve_inertia(m, {d.qLD, d.qLDiagInv}, x);
    for (int s = 0; s < friction.count; s++) {
      double sum = 0;
      for (int k = 0; k < b.n; k++) sum += row_of(friction, s)[k] * x[b.dofs[k]];
      friction.A[s * friction.count + r] = sum;
    }
    for (int i = 0; i < friction.reach; i++) {
      friction.z[r * friction.reach + i] = x[dofs[i]];
      x[dofs[i]] = 0;
    }
    // MuJoCo's lower bound of the diagonal applies to a row that no dof moves, and is constant then
    double& diagonal = friction.A[r * friction.count + r];
    const double floor = friction.cone ? kMinDiagonal : is_dry(b) ? kMinVal : 0;
    if (diagonal >= floor) continue;
    if (!is_zero(row_of(friction, r), b.n)) throw_heavy();
    diagonal = floor;
  }
}

// Throws Unsupported if MuJoCo's lower bound of the diagonal applies to an edge of a pyramid.
void require_light_edges(const ModelView& m, const DataView& d, const FrictionBlock& friction,
                         double* x) {
  const Block& b = *friction.block;
  for (int side = 0; side < 2; side++) {
    const double mu = b.contact.friction.v[friction.first - 1] * (side ? -1 : 1);
    double diagonal = 0;
    auto edge = [&](int k) { return b.J[k] + mu * row_of(friction, 0)[k]; };
    for (int k = 0; k < b.n; k++) x[b.dofs[k]] = edge(k);
    solve_inertia(m, {d.qLD, d.qLDiagInv}, x);
    for (int k = 0; k < b.n; k++) diagonal += edge(k) * x[b.dofs[k]];
    for (int i = 0; i < friction.reach; i++) x[friction.dofs[i]] = 0;
    if (diagonal < kMinDiagonal) throw_heavy();
  }
}

FrictionBlock make_friction_block(const Block& b, int first, int count) {
  FrictionBlock friction{};
  friction.block = &b;
  friction.first = first;
  friction.count = count;
  return friction;
}

// Writes the friction blocks of a block, without z and A. Returns their number.
int start_friction_blocks(const DataView& d, const Block& b, const double* acc,
                          FrictionBlock* frictions) {
  int count = 0;
  if (b.n == 0) return 0;
  if (is_dry(b)) {
    FrictionBlock& friction = frictions[count++] = make_friction_block(b, 0, 1);
    friction.force[0] = b.force[0];
    friction.aref[0] = d.efc_aref[b.row];
    friction.limit = d.efc_frictionloss[b.row];
  } else if (b.type == constraint::kContactPyramidal) {
    double moved[kMaxRows];
    move_block(b, acc, moved);
    for (int k = 1; k < b.count; k++) {
      // f+ and f- along n +- mu t: the force along t is mu (f+ - f-) within mu (f+ + f-)  (SLIP-5)
      const Edge up = pyramid_edge(d, b, moved, k, 0), down = pyramid_edge(d, b, moved, k, 1);
      if (up.force + down.force == 0) continue;
      FrictionBlock& friction = frictions[count++] = make_friction_block(b, k, 1);
      const int row = b.row + 2 * (k - 1);
      friction.force[0] = up.mu * (up.force - down.force);
      friction.aref[0] = (d.efc_aref[row] - d.efc_aref[row + 1]) / (2 * up.mu);
      friction.limit = up.mu * (up.force + down.force);
    }
  } else if (b.type == constraint::kContactElliptic && b.force[0] >= kMinVal) {
    FrictionBlock& friction = frictions[count++] = make_friction_block(b, 1, b.count - 1);
    friction.cone = true;
    friction.limit = b.force[0];
    for (int r = 1; r < b.count; r++) {
      friction.force[r - 1] = b.force[r];
      friction.aref[r - 1] = d.efc_aref[b.row + r];
    }
  }
  return count;
}

}  // namespace

void move_block(const Block& b, const double* acc, double* moved) {
  for (int r = 0; r < b.count; r++) {
    moved[r] = 0;
    for (int k = 0; k < b.n; k++) moved[r] += b.J[r * b.stride + k] * acc[b.dofs[k]];
  }
}

int make_friction_blocks(const ModelView& m, const DataView& d, const Blocks& blocks,
                         const double* acc, FrictionBlock* frictions, Arena& arena) {
  int count = 0;
  for (int k = 0; k < blocks.count; k++) {
    count += start_friction_blocks(d, blocks.block[k], acc, frictions + count);
  }
  double* x = arena.zeros<double>(m.nv);
  for (int k = 0; k < count; k++) {
    set_mobility(m, d, frictions[k], x, arena);
    if (!frictions[k].cone && !is_dry(*frictions[k].block))
      require_light_edges(m, d, frictions[k], x);
  }
  return count;
}

}  // namespace mujacobian

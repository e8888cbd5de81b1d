#include "constraint/exact_diagonal.h"

#include <cstring>

#include "layout/enums.h"
#include "smooth/inertia.h"
#include "smooth/inertia_derivative.h"
#include "smooth/velocity.h"

namespace mujacobian {
namespace {

// The row whose diagonal scales R of the rows first .. last-1: each its own, except that all rows
// of a contact are tied to its first one, which for a pyramid is an edge.
struct Source {
  double weight[kMaxRows];  // of the block's rows
  int first, last;
};

int sources(const Block& b, Source* out) {
  bool contact = b.type >= constraint::kContactFrictionless;
  int count = contact ? 1 : b.count;
  for (int s = 0; s < count; s++) {
    out[s] = {{}, contact ? 0 : s, contact ? b.count : s + 1};
    out[s].weight[s] = 1;
    if (b.type == constraint::kContactPyramidal) out[s].weight[1] = b.contact.friction.v[0];
  }
  return count;
}

}  // namespace

void add_exact_diagonal(const ModelView& m, const DataView& d, const Topology& tree,
                        const Blocks& blocks, const Residual& residual, Arena& arena) {
  // at rest and with a reference that does nothing, rho is d(J z)/dq
  DataView resting = at_rest(m, d, arena);
  double* kbip = arena.zeros<double>(4 * d.nefc);
  for (int row = 0; row < d.nefc; row++) kbip[4 * row + 2] = 0.5;
  resting.efc_KBIP = kbip;

  double* z = arena.take<double>(m.nv);
  double* dlog = arena.take<double>(m.nv);
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.active || b.n == 0) continue;
    bool dry = b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon;
    if (dry && b.hessian[0] == 0) continue;  // saturated: the force does not depend on D
    Source source[kMaxRows];
    for (int s = 0, count = sources(b, source); s < count; s++) {
      if (d.efc_R[b.row + s] <= 1e-15) continue;  // held at its floor
      // z = M^-1 J^T, diagonal = J z
      std::memset(z, 0, m.nv * sizeof(double));
      for (int r = 0; r < b.count; r++)
        for (int i = 0; i < b.n; i++) {
          z[b.dofs[i]] += source[s].weight[r] * b.J[r * b.stride + i];
        }
      double* row = arena.take<double>(m.nv);
      std::memcpy(row, z, m.nv * sizeof(double));
      solve_inertia(m, {d.qLD, d.qLDiagInv}, z);
      double diagonal = 0;
      for (int i = 0; i < b.n; i++) diagonal += row[b.dofs[i]] * z[b.dofs[i]];

      // d log D = -(2 dJ z - z dM z) / diagonal
      const Residual change = make_like(m, residual, arena);
      inertia_derivative(m, d, tree, z, change, arena);
      std::memset(dlog, 0, m.nv * sizeof(double));
      const Component& part = residual.components[residual.component[b.dofs[0]]];
      for (int j = 0; j < part.nv; j++)
        for (int c = 0; c < part.nv; c++) {
          dlog[part.dofs[c]] -= z[part.dofs[j]] * change.dq(part.dofs[j], part.dofs[c]) / diagonal;
        }
      const int size = b.count * b.stride;
      double* all = arena.zeros<double>(2 * size + b.stride + b.n * b.stride);
      BlockChange moved{all, all + size, all + 2 * size, all + 2 * size + b.stride};
      const BlockMotion motion = block_motion(m, resting, blocks, z, arena);
      differentiate(m, resting, b, motion, moved, arena);
      for (int r = 0; r < b.count; r++)
        for (int i = 0; i < b.n; i++) {
          double dj = source[s].weight[r] * moved.rho_q[r * b.stride + i];
          dlog[b.dofs[i]] -= 2 * dj / diagonal;
        }

      for (int r = source[s].first; r < source[s].last; r++)
        for (int i = 0; i < b.n; i++) {
          double push = b.J[r * b.stride + i] * b.force[r];
          for (int c = 0; push != 0 && c < part.nv; c++) {
            residual.dq(b.dofs[i], part.dofs[c]) += push * dlog[part.dofs[c]];
          }
        }
    }
  }
}

}  // namespace mujacobian

#include "constraint/exact_diagonal.h"

#include <cstring>

#include "constraint/contact.h"
#include "forces/inertia_derivative.h"
#include "layout/enums.h"
#include "tree/inertia.h"

namespace mujacobian {

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

bool depends_on_diagonal(const Block& b) {
  const bool dry = b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon;
  return !dry || b.hessian[0] != 0;
}

double force_by_log_stiffness(const DataView& d, const Block& b, int r) {
  const double shift = b.geometry ? adhesive_reference(d, b) : 0;
  return b.force[r] - b.hessian[r * b.count] * shift;
}

namespace {

// Returns -(2 dJ z - z dM z) / (J z), with z = M^-1 J^T of the row of the source.        (ROW-11)
double* dlogD(const ModelView& m, const DataView& d, const Topology& tree, const Blocks& blocks,
              const Block& b, const Source& source, const DofRows& residual, Arena& arena) {
  // the row, z and the diagonal entry J z
  double* row = arena.zeros<double>(m.nv);
  double* z = arena.take<double>(m.nv);
  for (int r = 0; r < b.count; r++)
    for (int i = 0; i < b.n; i++) {
      row[b.dofs[i]] += source.weight[r] * b.J[r * b.stride + i];
    }
  std::memcpy(z, row, m.nv * sizeof(double));
  solve_inertia(m, {d.qLD, d.qLDiagInv}, z);
  double diagonal = 0;
  for (int i = 0; i < b.n; i++) diagonal += row[b.dofs[i]] * z[b.dofs[i]];

  // z dM z
  double* dlog = arena.zeros<double>(m.nv);
  const DofRows inertia = make_like(m, residual, arena);
  inertia_derivative(m, d, tree, z, inertia, arena);
  const Component& part = residual.components[residual.component[b.dofs[0]]];
  for (int j = 0; j < part.nv; j++)
    for (int c = 0; c < part.nv; c++) {
      dlog[part.dofs[c]] -= z[part.dofs[j]] * inertia.dq(part.dofs[j], part.dofs[c]) / diagonal;
    }

  // 2 dJ z
  const double* moved = jacobian_change(m, d, blocks, b, z, arena);
  for (int r = 0; r < b.count; r++)
    for (int i = 0; i < b.n; i++) {
      dlog[b.dofs[i]] -= 2 * source.weight[r] * moved[r * b.stride + i] / diagonal;
    }
  return dlog;
}

}  // namespace

int diagonal_change(const ModelView& m, const DataView& d, const Topology& tree,
                    const Blocks& blocks, const Block& b, const DofRows& residual,
                    DiagonalChange* out, Arena& arena) {
  if (!depends_on_diagonal(b)) return 0;
  int changes = 0;
  Source source[kMaxRows];
  for (int s = 0, count = sources(b, source); s < count; s++) {
    if (has_least_softness(d, b, s)) continue;
    out[changes++] = {source[s].first, source[s].last,
                      dlogD(m, d, tree, blocks, b, source[s], residual, arena)};
  }
  return changes;
}

void add_exact_diagonal(const ModelView& m, const DataView& d, const Topology& tree,
                        const Blocks& blocks, const DofRows& residual, Arena& arena) {
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.active || b.n == 0) continue;
    DiagonalChange change[kMaxRows];
    const int count = diagonal_change(m, d, tree, blocks, b, residual, change, arena);
    const Component& part = residual.components[residual.component[b.dofs[0]]];
    for (int s = 0; s < count; s++)
      for (int r = change[s].first; r < change[s].last; r++)
        for (int i = 0; i < b.n; i++) {
          double push = b.J[r * b.stride + i] * force_by_log_stiffness(d, b, r);
          for (int c = 0; push != 0 && c < part.nv; c++) {
            residual.dq(b.dofs[i], part.dofs[c]) += push * change[s].dlogD[part.dofs[c]];
          }
        }
  }
}

}  // namespace mujacobian

#include "constraint/effective_diagonal.h"

#include <cstring>

#include "constraint/exact_diagonal.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// diagA is multiplied by num / den, num = sum_j J_j^2 / (M_jj + s_j), den = sum_j J_j^2 / M_jj
struct Ratio {
  double num, den;
};

double inertia_diagonal(const ModelView& m, const DataView& d, int dof) {
  return d.M[m.M_rowadr[dof] + m.M_rownnz[dof] - 1];
}

// row += scale x
void add_scaled(double* row, double scale, const double* x, int n) {
  for (int k = 0; k < n; k++) row[k] += scale * x[k];
}

// d log(num / den) over all columns of the block's component; null where MuJoCo leaves R alone
double* dlog_ratio(const ModelView& m, const DataView& d, const Blocks& blocks, const Block& b,
                   const Source& source, const DiagonalRates& diagonal, Arena& arena) {
  double* row = arena.zeros<double>(b.n);
  for (int r = 0; r < b.count; r++)
    for (int i = 0; i < b.n; i++) row[i] += source.weight[r] * b.J[r * b.stride + i];
  Ratio ratio{0, 0};
  for (int i = 0; i < b.n; i++) {
    double inertia = inertia_diagonal(m, d, b.dofs[i]);
    ratio.num += row[i] * row[i] / (inertia + d.efm_sdiag[b.dofs[i]]);
    ratio.den += row[i] * row[i] / inertia;
  }

  if (ratio.den <= kMinVal) return nullptr;

  const Component& part = diagonal.added.components[diagonal.added.component[b.dofs[0]]];
  double* dlog = arena.zeros<double>(part.stride);
  double* z = arena.zeros<double>(m.nv);  // dlog = z . dJ + ...
  for (int i = 0; i < b.n; i++) {
    const int dof = b.dofs[i];
    const double bare = inertia_diagonal(m, d, dof), whole = bare + d.efm_sdiag[dof];
    z[dof] = 2 * row[i] * (1 / (ratio.num * whole) - 1 / (ratio.den * bare));
    const double with_whole = -row[i] * row[i] / (ratio.num * whole * whole);
    const double with_bare = row[i] * row[i] / (ratio.den * bare * bare);
    add_scaled(dlog, with_whole + with_bare, diagonal.inertia.row[dof], part.nv);
    add_scaled(dlog, with_whole, diagonal.added.row[dof], part.force_column());
  }
  const double* moved = jacobian_change(m, d, blocks, b, z, arena);
  for (int r = 0; r < b.count; r++)
    for (int i = 0; i < b.n; i++) {
      dlog[diagonal.added.column[b.dofs[i]]] += source.weight[r] * moved[r * b.stride + i];
    }
  return dlog;
}

}  // namespace

int effective_change(const ModelView& m, const DataView& d, const Blocks& blocks, const Block& b,
                     const DiagonalRates& diagonal, EffectiveChange* out, Arena& arena) {
  if (!b.active || b.n == 0) return 0;
  bool dry = b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon;
  if (dry && b.hessian[0] == 0) return 0;  // saturated: the force does not depend on D
  // adhesion shifts the reference by R adhesion, which changes with D too
  double shift = 0;
  if (b.geometry) shift = b.contact.adhesion * d.efc_R[b.row] / (b.edges == b.count ? 1 : b.edges);

  Source source[kMaxRows];
  int changes = 0;
  for (int s = 0, count = sources(b, source); s < count; s++) {
    if (d.efc_R[b.row + s] <= kMinVal) continue;  // held at its floor
    EffectiveChange& change = out[changes];
    change = {{}, dlog_ratio(m, d, blocks, b, source[s], diagonal, arena)};
    if (!change.dlogR) continue;
    for (int r = source[s].first; r < source[s].last; r++) {
      change.force[r] = b.hessian[r * b.count] * shift - b.force[r];
    }
    changes++;
  }
  return changes;
}

void add_effective_diagonal(const ModelView& m, const DataView& d, const Blocks& blocks,
                            const DiagonalRates& diagonal, const Residual& residual, Arena& arena) {
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    EffectiveChange change[kMaxRows];
    for (int s = effective_change(m, d, blocks, b, diagonal, change, arena) - 1; s >= 0; s--) {
      const Component& part = residual.components[residual.component[b.dofs[0]]];
      for (int i = 0; i < b.n; i++) {
        double push = 0;
        for (int r = 0; r < b.count; r++) push += b.J[r * b.stride + i] * change[s].force[r];
        add_scaled(residual.row[b.dofs[i]], push, change[s].dlogR, part.force_column());
      }
    }
  }
}

}  // namespace mujacobian

#include "constraint/effective_diagonal.h"

#include <cstring>

#include "constraint/regularization.h"

namespace mujacobian {
namespace {

// The correction multiplies diagA by num / den, with num = sum_j J_j^2 / (M_jj + s_j) and
// den = sum_j J_j^2 / M_jj.
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

// Derivatives of log(num / den) with respect to J, M_jj and s_j, over the dofs of the block.
struct RatioSlopes {
  double *jacobian, *inertia, *added;
};

// Computes them for the row of a source. Returns false if MuJoCo does not correct R.
bool ratio_slopes(const ModelView& m, const DataView& d, const Block& b, const Source& source,
                  RatioSlopes& slopes, Arena& arena) {
  // the row of the source, and the ratio
  double* row = arena.zeros<double>(b.n);
  for (int r = 0; r < b.count; r++)
    for (int i = 0; i < b.n; i++) row[i] += source.weight[r] * b.J[r * b.stride + i];
  Ratio ratio{0, 0};
  for (int i = 0; i < b.n; i++) {
    double inertia = inertia_diagonal(m, d, b.dofs[i]);
    ratio.num += row[i] * row[i] / (inertia + d.efm_sdiag[b.dofs[i]]);
    ratio.den += row[i] * row[i] / inertia;
  }
  if (ratio.den <= kMinVal) return false;

  slopes = {arena.take<double>(b.n), arena.take<double>(b.n), arena.take<double>(b.n)};
  for (int i = 0; i < b.n; i++) {
    const double bare = inertia_diagonal(m, d, b.dofs[i]), whole = bare + d.efm_sdiag[b.dofs[i]];
    slopes.jacobian[i] = 2 * row[i] * (1 / (ratio.num * whole) - 1 / (ratio.den * bare));
    slopes.added[i] = -row[i] * row[i] / (ratio.num * whole * whole);
    slopes.inertia[i] = slopes.added[i] + row[i] * row[i] / (ratio.den * bare * bare);
  }
  return true;
}

// Returns d log(num / den) over all columns of the component of the block, or null if MuJoCo does
// not correct R.
double* dlog_ratio(const ModelView& m, const DataView& d, const Blocks& blocks, const Block& b,
                   const Source& source, const DiagonalRates& diagonal, Arena& arena) {
  RatioSlopes slopes;
  if (!ratio_slopes(m, d, b, source, slopes, arena)) return nullptr;

  // through M_jj and s_j
  const Component& part = diagonal.added.components[diagonal.added.component[b.dofs[0]]];
  double* dlog = arena.zeros<double>(part.stride);
  double* z = arena.zeros<double>(m.nv);
  for (int i = 0; i < b.n; i++) {
    const int dof = b.dofs[i];
    z[dof] = slopes.jacobian[i];
    add_scaled(dlog, slopes.inertia[i], diagonal.inertia.row[dof], part.nv);
    add_scaled(dlog, slopes.added[i], diagonal.added.row[dof], part.force_column());
  }

  // through J
  const double* moved = jacobian_change(m, d, blocks, b, z, arena);
  for (int r = 0; r < b.count; r++)
    for (int i = 0; i < b.n; i++) {
      dlog[diagonal.added.column[b.dofs[i]]] += source.weight[r] * moved[r * b.stride + i];
    }
  return dlog;
}

// Returns the entry of J^T force for one dof.
double push(const Block& b, int i, const double* force) {
  double sum = 0;
  for (int r = 0; r < b.count; r++) sum += b.J[r * b.stride + i] * force[r];
  return sum;
}

}  // namespace

int effective_change(const ModelView& m, const DataView& d, const Blocks& blocks, const Block& b,
                     const DiagonalRates& diagonal, EffectiveChange* out, Arena& arena) {
  int changes = 0;
  visit_regularization(d, b, [&](const Source& source, const double* force) {
    const double* dlogR = dlog_ratio(m, d, blocks, b, source, diagonal, arena);
    if (!dlogR) return;
    EffectiveChange& change = out[changes++];
    std::memcpy(change.force, force, sizeof(change.force));
    change.dlogR = dlogR;
  });
  return changes;
}

double effective_change(const ModelView& m, const DataView& d, const Block& b, const Source& source,
                        const double* dJ, Arena& arena) {
  RatioSlopes slopes;
  if (!ratio_slopes(m, d, b, source, slopes, arena)) return 0;
  double dlogR = 0;
  for (int r = 0; r < b.count; r++)
    for (int i = 0; i < b.n; i++) {
      dlogR += slopes.jacobian[i] * source.weight[r] * dJ[r * b.stride + i];
    }
  return dlogR;
}

void add_effective_diagonal(const ModelView& m, const DataView& d, const Blocks& blocks,
                            const DiagonalRates& diagonal, const DofRows& residual, Arena& arena) {
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    EffectiveChange change[kMaxRows];
    for (int s = effective_change(m, d, blocks, b, diagonal, change, arena) - 1; s >= 0; s--) {
      const Component& part = residual.components[residual.component[b.dofs[0]]];
      for (int i = 0; i < b.n; i++) {
        add_scaled(residual.row[b.dofs[i]], push(b, i, change[s].force), change[s].dlogR,
                   part.force_column());
      }
    }
  }
}

void add_effective_diagonal(const ModelView& m, const DataView& d, const Blocks& blocks,
                            const double* inertia, const double* added, double* column,
                            Arena& arena) {
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    visit_regularization(d, b, [&](const Source& source, const double* force) {
      RatioSlopes slopes;
      if (!ratio_slopes(m, d, b, source, slopes, arena)) return;
      double dlogR = 0;
      for (int i = 0; i < b.n; i++) {
        dlogR += slopes.inertia[i] * inertia[b.dofs[i]] + slopes.added[i] * added[b.dofs[i]];
      }
      for (int i = 0; i < b.n; i++) column[b.dofs[i]] += dlogR * push(b, i, force);
    });
  }
}

}  // namespace mujacobian

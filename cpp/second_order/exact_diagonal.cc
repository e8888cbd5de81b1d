#include "second_order/exact_diagonal.h"

#include "constraint/exact_diagonal.h"
#include "constraint/force_derivative.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "second_order/mobility.h"
#include "second_order/noslip.h"

namespace mujacobian {
namespace {

// The power -mu . J^T f of some rows of a block, with its derivatives with respect to the
// positions, the velocities and the accelerations of the dofs of the block.
struct BlockPower {
  double value;
  double *q, *v, *acc;  // (n)
};

BlockPower block_power(const ModelView& m, const DataView& d, const Blocks& blocks, const Block& b,
                       const BlockMotion& motion, const double* mu, const Source& source,
                       Arena& arena) {
  BlockPower p{0, arena.zeros<double>(b.n), arena.zeros<double>(b.n), arena.zeros<double>(b.n)};
  BlockChange change = make_change(b, arena);
  differentiate(m, d, b, motion, change, arena);
  double* slope_q = arena.take<double>(b.count * b.stride);
  double* slope_v = arena.take<double>(b.count * b.stride);
  force_change(b, change, slope_q, slope_v);
  const double* turned = jacobian_change(m, d, blocks, b, mu, arena);
  for (int r = source.first; r < source.last; r++) {
    double virt = 0;
    for (int i = 0; i < b.n; i++) virt += b.J[r * b.stride + i] * mu[b.dofs[i]];
    p.value -= virt * b.force[r];
    for (int i = 0; i < b.n; i++) {
      const int at = r * b.stride + i;
      p.q[i] -= turned[at] * b.force[r] + virt * slope_q[at];
      p.v[i] -= virt * slope_v[at];
      for (int s = 0; s < b.count; s++) {
        p.acc[i] += virt * b.hessian[r * b.count + s] * b.J[s * b.stride + i];
      }
    }
  }
  return p;
}

// Adds the second derivatives of the rows of one source.
void add_source(const ModelView& m, const DataView& d, const ForwardDynamics& forward,
                const Block& b, const Source& source, const BlockMotion& motion, const double* mu,
                const QuadraticForm& form, Arena& arena) {
  const BlockPower power = block_power(m, d, forward.blocks, b, motion, mu, source, arena);
  const MobileRow row =
      make_mobile_row(m, d, forward.tree, b, source.weight, motion, form.layout, arena);
  const double diagonal = mobility(m, row, row);
  double* dlogD = arena.zeros<double>(m.nv);
  add_mobility_change(m, row, row, -1 / diagonal, form.layout, dlogD);

  // the curvature of 1 / diagonal
  const double weight = -power.value / diagonal;
  add_mobility_hessian(m, d, forward.tree, forward.blocks, &row, 1, &weight, form, arena);
  const Component& part = form.layout.components[form.layout.component[b.dofs[0]]];
  for (int j = 0; j < part.nv; j++) {
    double* q = form.q(part.dofs[j]);
    const double slope = dlogD[part.dofs[j]];
    for (int k = 0; k < part.nv; k++) q[k] += power.value * slope * dlogD[part.dofs[k]];
    // its slope, and the slopes of the power
    for (int i = 0; i < b.n; i++) {
      q[form.q_column(b.dofs[i])] += slope * power.q[i];
      q[form.v_column(b.dofs[i])] += slope * power.v[i];
      form.mixed[b.dofs[i]][j] += slope * power.acc[i];
    }
  }
}

}  // namespace

void add_exact_diagonal_hessian(const ModelView& m, const DataView& d,
                                const ForwardDynamics& forward, const double* mu,
                                const QuadraticForm& form, Arena& arena) {
  if (!(m.opt.enableflags & enable::kDiagExact) || !forward.blocks.count) return;
  const BlockMotion motion = block_motion(m, d, forward.blocks, forward.solved, arena);
  for (int k = 0; k < forward.blocks.count; k++) {
    const Block& b = forward.blocks.block[k];
    if (!b.active || b.n == 0 || !depends_on_diagonal(b)) continue;
    if (forward.noslip.first) {
      throw Unsupported("flag diagexact", kExactSweeps);
    }
    if (b.geometry && b.contact.adhesion != 0) {
      throw Unsupported("flag diagexact", kExactAdhesion);
    }
    Source source[kMaxRows];
    for (int s = 0, count = sources(b, source); s < count; s++) {
      if (has_least_softness(d, b, s)) continue;
      const Arena::Mark mark = arena.mark();
      add_source(m, d, forward, b, source[s], motion, mu, form, arena);
      arena.rewind(mark);
    }
  }
}

}  // namespace mujacobian

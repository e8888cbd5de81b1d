#include "constraint/force_derivative.h"

#include "layout/enums.h"
#include "linear/combine.h"

namespace mujacobian {

void force_change(const Block& b, const BlockChange& change, double* q, double* v) {
  multiply_hessian(b, -1, change.rho_q, q);
  multiply_hessian(b, -1, change.rho_v, v);
  combine_rows<true>(q, b.count, {b.force, 1, 0}, change.dlogD, 1, b.stride);
}

ForceDerivative force_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                                 const Blocks& blocks, const Block& b, const BlockMotion& motion,
                                 const DofRows& residual, Arena& arena) {
  const std::size_t size = b.count * b.stride;
  double* all = arena.zeros<double>(3 * size);
  ForceDerivative f{all, all + size, all + 2 * size, nullptr, 0};
  if (!b.active || b.n == 0) return f;

  multiply_hessian(b, -1, b.J, f.acc);
  const ForceSlopes& known = blocks.slopes[&b - blocks.block];
  if (known.q) {
    f.q = known.q, f.v = known.v;
  } else {
    BlockChange change = make_change(b, arena);
    differentiate(m, d, b, motion, change, arena);
    force_change(b, change, f.q, f.v);
  }
  if (m.opt.enableflags & enable::kDiagExact) {
    f.diagonal = arena.take<DiagonalChange>(kMaxRows);
    f.diagonal_count = diagonal_change(m, d, tree, blocks, b, residual, f.diagonal, arena);
  }
  return f;
}

}  // namespace mujacobian

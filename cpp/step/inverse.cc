#include "step/inverse.h"

#include <cstring>

#include "constraint/force.h"
#include "dynamics/forward.h"
#include "sensor/sensor.h"
#include "smooth/inertia_derivative.h"
#include "smooth/tendon.h"

namespace mujacobian {
namespace {

// The state as the forward dynamics sees it, but at the given acceleration.
Forward evaluate_inverse(const ModelView& m, const DataView& d, bool actuated, Arena& arena) {
  Forward f{};
  f.tree = topology(m, arena);
  f.paths.tendon = arena.take<PathForce>(m.ntendon);
  f.paths.tendon_count = tendon_forces(m, d, f.paths.tendon, arena);
  f.paths.actuation = actuated ? actuation(m, d, arena) : no_actuation(m, arena);
  f.blocks = make_blocks(m, d, arena);
  for (int k = 0; k < f.blocks.count; k++) evaluate(m, d, d.qacc, f.blocks.block[k]);
  f.residual = make_residual(m, f.blocks, f.paths.actuation.dofs, true, arena);
  f.solved = f.acc = d.qacc;
  return f;
}

// out (nv, width) <- scale * columns first .. first+nv-1 of the rows, transposed
void transpose(const double* rows, int stride, int first, int nv, int count, double* out) {
  for (int k = 0; k < nv; k++)
    for (int r = 0; r < count; r++) {
      out[static_cast<std::ptrdiff_t>(k) * count + r] =
          rows[static_cast<std::ptrdiff_t>(r) * stride + first + k];
    }
}

// DfDq and DfDv: -(-dg), with dof k of a component in its own column
void write_forces(const ModelView& m, const Residual& residual, double* DfDq, double* DfDv) {
  const std::size_t nv = m.nv;
  if (DfDq) std::memset(DfDq, 0, nv * nv * sizeof(double));
  if (DfDv) std::memset(DfDv, 0, nv * nv * sizeof(double));
  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    for (int i = 0; i < part.nv; i++)
      for (int k = 0; k < part.nv; k++) {
        const double* row = residual.row[part.dofs[i]];
        const std::size_t at = part.dofs[k] * nv + part.dofs[i];
        if (DfDq) DfDq[at] = -row[k];
        if (DfDv) DfDv[at] = -row[part.nv + k];
      }
  }
}

// dM_ij/dq_k from d(M e_j)/dq for every dof j                                              (INV-3)
void write_inertia(const ModelView& m, const DataView& d, const Forward& f, double* DmDq,
                   Arena& arena) {
  const Residual change = make_like(m, f.residual, arena);
  double* unit = arena.zeros<double>(m.nv);
  Arena scratch;
  for (int j = 0; j < m.nv; j++) {
    scratch.reset();
    for (int c = 0; c < change.count; c++) {
      const Component& part = change.components[c];
      std::memset(part.x, 0, sizeof(double) * part.nv * part.stride);
    }
    unit[j] = 1;
    inertia_derivative(m, d, f.tree, unit, change, scratch);
    unit[j] = 0;
    for (int i = j; i < f.tree.end[j]; i++) {
      for (int p = m.M_rowadr[i], last = p + m.M_rownnz[i]; p < last; p++) {
        if (m.M_colind[p] != j) continue;
        for (int k = 0; k < m.nv; k++) {
          bool same = change.component[k] == change.component[i];
          DmDq[static_cast<std::ptrdiff_t>(k) * m.nC + p] = same ? -change.dq(i, k) : 0;
        }
      }
    }
  }
}

// Sensors at fixed acceleration; the columns of applied force stand for those of acceleration.
// mj_inverse does not evaluate the actuators: their forces are what they were.
void write_sensors(const ModelView& m, const DataView& d, Forward f, const InverseOutputs& out,
                   Arena& arena) {
  f.paths.actuation = no_actuation(m, arena);
  const int nv = m.nv, ns = m.nsensordata, nx = 2 * nv + m.na;
  double* C = arena.take<double>(static_cast<std::size_t>(ns) * nx);
  double* Da = arena.take<double>(static_cast<std::size_t>(ns) * nv);
  sense(m, d, f, {C, nullptr, Da}, arena);
  if (out.DsDq) transpose(C, nx, 0, nv, ns, out.DsDq);
  if (out.DsDv) transpose(C, nx, nv, nv, ns, out.DsDv);
  if (out.DsDa) transpose(Da, nv, 0, nv, ns, out.DsDa);
}

}  // namespace

void inverse(const ModelView& m, const DataView& given, bool actuation, const InverseOutputs& out,
             Arena& arena) {
  // qfrc_inverse balances applied forces, it does not contain them
  DataView d = given;
  d.xfrc_applied = arena.zeros<double>(6 * m.nbody);
  const Forward f = evaluate_inverse(m, d, actuation, arena);
  // at fixed acceleration da = 0, and da/da = 1 stands in the columns of applied force   (INV-2)
  if (out.DsDq || out.DsDv || out.DsDa) write_sensors(m, d, f, out, arena);
  if (out.DfDa) fill_hessian(m, d, f.blocks, out.DfDa);
  if (out.DmDq) write_inertia(m, d, f, out.DmDq, arena);
  if (!out.DfDq && !out.DfDv) return;
  fill_residual(m, d, f, f.acc, arena);
  write_forces(m, f.residual, out.DfDq, out.DfDv);
}

}  // namespace mujacobian

#include "step/inverse.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "constraint/force.h"
#include "constraint/idle.h"
#include "contact/collider.h"
#include "dynamics/forward.h"
#include "dynamics/free_body.h"
#include "forces/inertia_derivative.h"
#include "forces/tendon.h"
#include "layout/enums.h"
#include "sensor/sensor.h"
#include "step/integrator.h"

namespace mujacobian {
namespace {

// Sets the derivatives of actuator forces to zero, except for the terms of the implicit
// integrators.
void drop_force_derivatives(const ModelView& m, Actuation& actuation, Arena& arena) {
  actuation.frozen = no_actuation(m, arena).frozen;
  for (int k = 0; k < actuation.count; k++) {
    PathForce& f = actuation.forces[k];
    f.force = f.dlength = f.drate = 0;
    f.other_count = 0;
    for (int i = 0; i < f.input_count; i++) f.inputs[i].force = 0;
  }
}

// Returns whether the given acceleration is (v+ - v) / h (flag invdiscrete), so that the
// acceleration at which the forces are evaluated must be computed from it.
bool is_converted(const ModelView& m) {
  return (m.opt.enableflags & enable::kInvDiscrete) && !has_metric(m);
}

// Returns M^-1 (M + h Dhat) w.                                                             (INV-4)
const double* continuous_acceleration(const ModelView& m, const DataView& d, const Topology& tree,
                                      const StepMatrix& matrix, const double* w, Arena& arena) {
  if (matrix.is_inertia()) return w;
  double* a = arena.zeros<double>(m.nv);
  for (int i = 0; i < m.nv; i++)
    for (int j = 0; j < m.nv; j++) a[i] += matrix.entry(m, tree, i, j) * w[j];
  solve_inertia(m, {d.qLD, d.qLDiagInv}, a);
  return a;
}

// Returns the forward dynamics of the state, but with the given acceleration in place of the
// optimum.
ForwardDynamics evaluate_inverse(const ModelView& m, const DataView& d, bool actuated,
                                 Arena& arena) {
  ForwardDynamics f{};
  f.tree = topology(m, arena);
  f.paths.tendon = arena.take<PathForce>(m.ntendon);
  f.paths.tendon_count = tendon_forces(m, d, f.paths.tendon, arena);
  const bool gains = is_converted(m) || has_metric(m);
  f.paths.actuation = actuated || gains ? actuation(m, d, arena) : no_actuation(m, arena);
  if (gains && !actuated) drop_force_derivatives(m, f.paths.actuation, arena);

  // constraints and components
  f.blocks = make_blocks(m, d, arena, f.paths.count());
  if (const double* noise = remove_idle(m, d, f.blocks, arena)) {
    const double* worst = std::max_element(
        noise, noise + m.nv, [](double a, double b) { return std::abs(a) < std::abs(b); });
    refuse_noise(static_cast<int>(worst - noise), *worst);
  }
  f.residual = make_dof_rows(m, f.blocks, f.paths.actuation.dofs, true, arena);
  f.metric = {d, f.blocks, nullptr};
  if (has_metric(m)) f.metric = make_metric(m, d, f.paths, f.blocks, arena);
  f.solved = f.acc = d.qacc;
  return f;
}

// Writes da with respect to q, v and the given acceleration w to the residual:
//   M da = (M + h Dhat) dw + dM (w - a) + h dDhat w.                                      (INV-5)
// The columns of applied force contain the derivatives with respect to w.
void convert_change(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                    const StepMatrix& matrix, const double* w, Arena& arena) {
  // minus the terms with dM and dDhat
  double* lag = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) lag[i] = w[i] - f.acc[i];
  const DofRows change = make_like(m, f.residual, arena);
  inertia_derivative(m, d, f.tree, lag, change, arena);
  subtract_damping_change(m, d, f, matrix.block, w, /*inverse=*/true, change, arena);
  for (int c = 0; c < change.count; c++) {
    // right-hand side, then the solve with M
    const Component &from = change.components[c], &part = f.residual.components[c];
    for (int i = 0; i < part.nv; i++) {
      double* row = f.residual.row[part.dofs[i]];
      for (int k = 0; k < 2 * part.nv; k++) row[k] = -change.row[part.dofs[i]][k];
      for (int k = 0; k < part.nv; k++) {
        row[from.force_column() + k] = matrix.entry(m, f.tree, part.dofs[i], part.dofs[k]);
      }
    }
    visit_trees(m, part.dofs, part.nv, [&](int, int first, int last) {
      const int dof = part.dofs[first];
      solve_inertia(m, f.tree, {d.qLD, d.qLDiagInv}, dof, last - first, f.residual.row[dof],
                    part.stride, 0, part.end_column());
    });
  }
}

// Returns df/da, row-major.                                                               (INV-2)
double* force_rate(const ModelView& m, const ForwardDynamics& f, Arena& arena) {
  const std::size_t nv = m.nv;
  double* K = arena.take<double>(nv * nv);
  fill_hessian(m, f.metric.problem, f.metric.blocks, K);
  for (int t = 0; f.metric.block && t < m.ntree; t++) {
    const TreeBlock* b = f.metric.block[t];
    if (!b) continue;
    add_free_bias_rate(m, f.metric.problem, m.dof_bodyid[b->dof], m.opt.timestep,
                       K + b->dof * nv + b->dof, m.nv);
  }
  return K;
}

// Writes DfDa = (K da/dw)^T.
void write_rate(const ModelView& m, const DofRows& motion, const double* K, double* DfDa) {
  const std::size_t nv = m.nv;
  std::memset(DfDa, 0, nv * nv * sizeof(double));
  for (int c = 0; c < motion.count; c++) {
    const Component& part = motion.components[c];
    for (int i = 0; i < part.nv; i++)
      for (int j = 0; j < part.nv; j++) {
        double rate = K[part.dofs[i] * nv + part.dofs[j]];
        const double* row = motion.row[part.dofs[j]] + part.force_column();
        for (int k = 0; rate != 0 && k < part.nv; k++) {
          DfDa[part.dofs[k] * nv + part.dofs[i]] += rate * row[k];
        }
      }
  }
}

// Writes columns first .. first+nv-1 of `count` rows to out (nv, count), transposed.
void transpose(const double* rows, int stride, int first, int nv, int count, double* out) {
  for (int k = 0; k < nv; k++)
    for (int r = 0; r < count; r++) {
      out[static_cast<std::ptrdiff_t>(k) * count + r] =
          rows[static_cast<std::ptrdiff_t>(r) * stride + first + k];
    }
}

// Writes DfDq and DfDv: dg + K da, transposed.
void write_forces(const ModelView& m, const DofRows& residual, const DofRows& motion,
                  const double* K, double* DfDq, double* DfDv) {
  const std::size_t nv = m.nv;
  if (DfDq) std::memset(DfDq, 0, nv * nv * sizeof(double));
  if (DfDv) std::memset(DfDv, 0, nv * nv * sizeof(double));
  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    for (int i = 0; i < part.nv; i++) {
      // -dg - K da
      double* row = residual.row[part.dofs[i]];
      for (int j = 0; j < part.nv; j++) {
        double rate = K[part.dofs[i] * nv + part.dofs[j]];
        const double* moved = motion.row[part.dofs[j]];
        for (int k = 0; rate != 0 && k < 2 * part.nv; k++) row[k] -= rate * moved[k];
      }
      // its negative, transposed
      for (int k = 0; k < part.nv; k++) {
        const std::size_t at = part.dofs[k] * nv + part.dofs[i];
        if (DfDq) DfDq[at] = -row[k];
        if (DfDv) DfDv[at] = -row[part.nv + k];
      }
    }
  }
}

// Writes dM_ij/dq_k, from d(M e_j)/dq for every dof j.                                     (INV-3)
void write_inertia(const ModelView& m, const DataView& d, const ForwardDynamics& f, double* DmDq,
                   Arena& arena) {
  const DofRows change = make_like(m, f.residual, arena);
  double* unit = arena.zeros<double>(m.nv);
  Arena scratch;
  for (int j = 0; j < m.nv; j++) {
    // change = -d(M e_j)/dq
    scratch.reset();
    for (int c = 0; c < change.count; c++) {
      const Component& part = change.components[c];
      std::memset(part.x, 0, sizeof(double) * part.nv * part.stride);
    }
    unit[j] = 1;
    inertia_derivative(m, d, f.tree, unit, change, scratch);
    unit[j] = 0;
    // entries (i, j) of the packed M
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

// Writes the derivatives of sensors. The columns of applied force contain the derivatives with
// respect to the given acceleration. mj_inverse does not evaluate actuators, so their forces are
// constant.
void write_sensors(const ModelView& m, const DataView& d, ForwardDynamics f,
                   const InverseOutputs& out, Arena& arena) {
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

void inverse(const ModelView& given_m, const DataView& given_d, bool actuation,
             const InverseOutputs& out, Arena& arena) {
  // qfrc_inverse does not contain applied forces
  const auto& [m, evaluated] = converge_inverse(given_m, given_d, actuation);
  DataView d = evaluated;
  d.xfrc_applied = arena.zeros<double>(6 * m.nbody);
  ForwardDynamics f = evaluate_inverse(m, d, actuation, arena);

  // the acceleration at which forces are evaluated, and the constraint forces there
  if (is_converted(m)) {
    const StepMatrix matrix = step_matrix(m, d, f, /*inverse=*/true, arena);
    f.solved = f.acc = continuous_acceleration(m, d, f.tree, matrix, d.qacc, arena);
    if (!matrix.is_inertia()) convert_change(m, d, f, matrix, d.qacc, arena);
  }
  for (int k = 0; k < f.metric.blocks.count; k++) evaluate(m, d, f.acc, f.metric.blocks.block[k]);

  // Sensors and M. The residual contains da with respect to q and v and, in the columns of applied
  // force, with respect to the given acceleration.
  if (out.DsDq || out.DsDv || out.DsDa) write_sensors(m, d, f, out, arena);
  if (out.DmDq) write_inertia(m, d, f, out.DmDq, arena);
  if (!out.DfDq && !out.DfDv && !out.DfDa) return;

  // forces
  const double* K = force_rate(m, f, arena);
  if (out.DfDa) write_rate(m, f.residual, K, out.DfDa);
  if (!out.DfDq && !out.DfDv) return;
  ForwardDynamics balance = f;
  balance.residual = make_like(m, f.residual, arena);
  fill_residual(m, d, balance, f.acc, arena);
  write_forces(m, balance.residual, f.residual, K, out.DfDq, out.DfDv);
}

}  // namespace mujacobian

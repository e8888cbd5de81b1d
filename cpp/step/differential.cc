#include "step/differential.h"

#include "dynamics/convergence.h"
#include "forces/inertia_derivative.h"
#include "layout/notice.h"
#include "linear/lu.h"
#include "step/support.h"

namespace mujacobian {

StepDifferential differentiate_step(const ModelView& m, const DataView& d, bool forces, bool senses,
                                    Arena& arena) {
  require_rows(m, d);
  StepDifferential s{};
  s.senses = senses;
  s.forward = evaluate_forward(m, d, forces, arena);
  const ForwardDynamics& f = s.forward;
  const DofRows& residual = f.residual;
  s.step = integrate(m, d, f, arena);
  notices().add(Notices::kSolver, {solver_error(m, d, f, s.step, arena), kSolverLimit});
  s.twice = (f.blocks.count || senses) && !s.step.explicit_;

  double* at = arena.take<double>(m.nv);
  double* lag = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) {
    bool held = s.held(residual.component[i]);
    at[i] = held ? f.solved[i] : s.step.w[i];
    lag[i] = held ? s.step.w[i] - f.acc[i] : 0;
  }
  s.at = at, s.lag = lag;
  fill_residual(m, d, f, at, arena);
  s.late = residual;
  if (s.twice) {
    s.late = make_like(m, residual, arena);
    inertia_derivative(m, d, f.tree, lag, s.late, arena);
  }
  subtract_damping_change(m, d, f, s.step.block, s.step.w, /*inverse=*/false, s.late, arena);
  for (int c = 0; s.twice && c < residual.count; c++) {
    if (s.held(c)) continue;
    const Component& part = residual.components[c];
    double* x = s.late.components[c].x;
    for (int k = 0; k < part.nv * part.stride; k++) x[k] += part.x[k];
  }
  return s;
}

StepDifferential at_acceleration(const ModelView& m, const ForwardDynamics& forward, Arena& arena) {
  StepDifferential s{};
  s.forward = forward;
  s.step = {true, forward.acc, {}, nullptr};
  s.late = forward.residual;
  s.at = forward.solved;
  s.lag = arena.zeros<double>(m.nv);
  s.senses = true;
  return s;
}

void add_driven(const ModelView& m, const DataView& d, const StepDifferential& s, int c, int first,
                int last) {
  const Component& part = s.forward.residual.components[c];
  for (int i = 0; i < part.nv;) {
    int dof = part.dofs[i], t = m.dof_treeid[dof], num = m.tree_dofnum[t];
    multiply_inertia(m, s.forward.tree, d.M, m.tree_dofadr[t], num, s.forward.residual.row[dof],
                     s.late.row[dof], part.stride, first, last);
    i += num;
  }
}

void solve_step(const ModelView& m, const StepDifferential& s, int c, int first, int last,
                Arena& arena) {
  const Component& part = s.late.components[c];
  for (int i = 0; i < part.nv;) {
    int t = m.dof_treeid[part.dofs[i]], num = m.tree_dofnum[t];
    double* rows = s.late.row[part.dofs[i]];
    const TreeBlock* block = s.step.block ? s.step.block[t] : nullptr;
    if (block) {
      solve_lu(block->n, block->matrix, block->order, rows, part.stride, first, last, arena);
    } else {
      solve_inertia(m, s.forward.tree, s.step.factor, m.tree_dofadr[t], num, rows, part.stride,
                    first, last);
    }
    i += num;
  }
}

}  // namespace mujacobian

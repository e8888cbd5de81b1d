#include "step/differential.h"

#include "dynamics/convergence.h"
#include "forces/inertia_derivative.h"
#include "linear/lu.h"
#include "step/support.h"

namespace mujacobian {
namespace {

// Columns first .. last-1 of component c: step_rows <- (M + h Dhat)^-1 step_rows.
void solve_step(const ModelView& m, const StepDifferential& s, int c, int first, int last,
                Arena& arena) {
  const Component& part = s.step_rows.components[c];
  visit_trees(m, part.dofs, part.nv, [&](int t, int i, int end) {
    const int dof = part.dofs[i];
    double* rows = s.step_rows.row[dof];
    if (const TreeBlock* block = s.step.block ? s.step.block[t] : nullptr) {
      solve_lu(block->n, block->matrix, block->order, rows, part.stride, first, last, arena);
    } else {
      solve_inertia(m, s.forward.tree, s.step.factor, dof, end - i, rows, part.stride, first, last);
    }
  });
}

// Component c of x <- (M + h Dhat)^-T x
void solve_step_transposed(const ModelView& m, const StepDifferential& s, int c, const DofRows& x,
                           Arena& arena) {
  const Component& part = x.components[c];
  visit_trees(m, part.dofs, part.nv, [&](int t, int i, int end) {
    const int dof = part.dofs[i];
    if (const TreeBlock* block = s.step.block ? s.step.block[t] : nullptr) {
      solve_lu_transposed(block->n, block->matrix, block->order, x.row[dof], part.stride, arena);
    } else {
      solve_inertia(m, s.forward.tree, s.step.factor, dof, end - i, x.row[dof], part.stride, 0, 1);
    }
  });
}

}  // namespace

void StepDifferential::solve(const ModelView& m, const DataView& d, int c, int first, int last,
                             Arena& arena) const {
  if (solves_acceleration(c)) {
    solve_acceleration(m, d, forward, c, first, last, arena);
    if (two_systems) {
      add_inertia_product(m, d, forward.tree, forward.residual, step_rows, c, first, last);
    }
  }
  if (solves_step(c)) solve_step(m, *this, c, first, last, arena);
}

void StepDifferential::solve_transposed(const ModelView& m, const DataView& d, int c,
                                        const DofRows& z, const DofRows& y, Arena& arena) const {
  if (solves_step(c)) solve_step_transposed(m, *this, c, z, arena);
  if (!solves_acceleration(c)) return;
  if (two_systems) {
    add_inertia_product(m, d, forward.tree, z, y, c, 0, 1);
  } else {
    const Component& part = z.components[c];
    for (int i = 0; i < part.nv; i++) y.row[part.dofs[i]][0] = z.row[part.dofs[i]][0];
  }
  ForwardDynamics with_y = forward;
  with_y.residual = y;
  solve_acceleration_transposed(m, d, with_y, c, arena);
}

StepDifferential differentiate_step(const ModelView& m, const DataView& d, bool forces, bool senses,
                                    Arena& arena) {
  require_rows(m, d);
  StepDifferential s{};
  s.senses = senses;
  s.forward = evaluate_forward(m, d, forces, arena);
  const ForwardDynamics& f = s.forward;
  const DofRows& residual = f.residual;
  s.step = integrate(m, d, f, arena);
  notice_solver(m, d, solver_error(m, d, f, s.step, arena));
  // the acceleration of the optimum and the one after the sweeps of the noslip solver differ
  const bool sweeps = f.noslip.first;
  s.two_systems = (f.blocks.count || senses) && (!s.step.explicit_ || sweeps);

  // the accelerations of the two systems
  double* at = arena.take<double>(m.nv);
  double* lag = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) {
    const bool solved = s.solves_acceleration(residual.component[i]);
    at[i] = solved ? f.solved[i] : s.step.w[i];
    lag[i] = solved ? s.step.w[i] - f.acc[i] : 0;
  }
  s.at = at, s.lag = lag;

  // their right-hand sides: -dg, and -dM (w - acc) - h dDhat w
  fill_residual(m, d, f, at, arena);
  s.step_rows = residual;
  if (s.two_systems) {
    s.step_rows = make_like(m, residual, arena);
    const Arena::Mark mark = arena.mark();
    inertia_derivative(m, d, f.tree, lag, s.step_rows, arena);
    arena.rewind(mark);
  }
  subtract_damping_change(m, d, f, s.step.block, s.step.w, /*inverse=*/false, s.step_rows, arena);

  // a component that skips the first system has its residual in the second one
  for (int c = 0; s.two_systems && c < residual.count; c++) {
    if (s.solves_acceleration(c)) continue;
    const Component& part = residual.components[c];
    double* x = s.step_rows.components[c].x;
    for (int k = 0; k < part.nv * part.stride; k++) x[k] += part.x[k];
  }
  return s;
}

StepDifferential at_acceleration(const ModelView& m, const ForwardDynamics& forward, Arena& arena) {
  StepDifferential s{};
  s.forward = forward;
  s.step = {true, forward.acc, {}, nullptr};
  s.step_rows = forward.residual;
  s.at = forward.solved;
  s.lag = arena.zeros<double>(m.nv);
  s.senses = true;
  return s;
}

void add_inertia_product(const ModelView& m, const DataView& d, const Topology& tree,
                         const DofRows& from, const DofRows& to, int c, int first, int last) {
  const Component& part = from.components[c];
  visit_trees(m, part.dofs, part.nv, [&](int, int i, int end) {
    const int dof = part.dofs[i];
    multiply_inertia(m, tree, d.M, dof, end - i, from.row[dof], to.row[dof], part.stride, first,
                     last);
  });
}

}  // namespace mujacobian

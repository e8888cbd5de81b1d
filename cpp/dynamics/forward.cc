#include "dynamics/forward.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "constraint/idle.h"
#include "contact/collider.h"
#include "contact/identification.h"
#include "dynamics/convergence.h"
#include "forces/external.h"
#include "forces/fluid.h"
#include "forces/inertia_derivative.h"
#include "forces/passive.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/sleep.h"
#include "layout/unsupported.h"
#include "linear/lu.h"
#include "tree/inverse_dynamics.h"

namespace mujacobian {

namespace {

// Calls visit(block, rows) for the trees of a component that have a block of their own in the
// metric.
template <class F>
void visit_free_bodies(const ModelView& m, const ForwardDynamics& f, const Component& part,
                       F visit) {
  if (!f.metric.block) return;
  visit_trees(m, part.dofs, part.nv, [&](int t, int first, int) {
    if (f.metric.block[t]) visit(*f.metric.block[t], f.residual.row[part.dofs[first]]);
  });
}

// Copies the rows of these trees, solves the copies by solve(block, rows), and returns them one
// after the other. Returns null if there are none.
template <class F>
const double* solve_free_bodies(const ModelView& m, const ForwardDynamics& f, const Component& part,
                                Arena& arena, F solve) {
  int count = 0;
  visit_free_bodies(m, f, part, [&](const TreeBlock& b, double*) { count += b.n; });
  if (count == 0) return nullptr;
  const std::size_t size = static_cast<std::size_t>(count) * part.stride;
  double* solved = arena.take<double>(size);
  double* at = solved;
  visit_free_bodies(m, f, part, [&](const TreeBlock& b, const double* rows) {
    std::memcpy(at, rows, sizeof(double) * b.n * part.stride);
    solve(b, at);
    at += b.n * part.stride;
  });
  return solved;
}

// Writes these solutions to the rows of the trees.
void put_free_bodies(const ModelView& m, const ForwardDynamics& f, const Component& part,
                     const double* solved) {
  visit_free_bodies(m, f, part, [&](const TreeBlock& b, double* rows) {
    std::memcpy(rows, solved, sizeof(double) * b.n * part.stride);
    solved += b.n * part.stride;
  });
}

// A pivot of the mass matrix that is smaller than this share of its diagonal entry is a rounding
// error.
constexpr double kSingular = 1e-13;

// Throws Unsupported if a contact that pushes has no known features.
void require_all_features(const ModelView& m, const Blocks& blocks) {
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (b.active && b.geometry) require_features(m, b.contact, *b.geometry);
  }
}

// Returns the optimum, found from qacc. If that fails and MuJoCo's solver has not run with the
// current contacts, it runs, and the search starts again. The reason of a contact without features
// comes before those of the search, because no setting of the solver can help.
Optimum search(const ModelView& m, const DataView& d, ForwardDynamics& f, Arena& arena) {
  auto find = [&] {
    return find_optimum(m, f.metric.problem, f.tree, f.residual, f.metric.blocks, arena);
  };
  for (bool again = false;; again = true) {
    try {
      return find();
    } catch (const std::domain_error&) {
      if (!again && solve_again(d)) continue;
      require_all_features(m, f.metric.blocks);
      throw;
    }
  }
}

// Throws std::domain_error if the mass matrix is singular.
void require_regular(const ModelView& m, const DataView& d) {
  for (int i = 0; i < m.nv; i++) {
    const double diagonal = d.M[m.M_rowadr[i] + m.M_rownnz[i] - 1];
    if (d.qLDiagInv[i] * diagonal * kSingular < 1) continue;
    throw std::domain_error(
        "the mass matrix is singular: " + element_name(m, object::kJoint, m.dof_jntid[i]) +
        " (dof " + std::to_string(i) +
        ") moves only what other joints move in the same way; give it armature");
  }
}

// Throws Unsupported if a constraint row acts on a tree that sleeps, as the friction of a tendon
// may.
void require_awake_rows(const ModelView& m, const DataView& d, const Blocks& blocks) {
  if (!any_asleep(m, d)) return;
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    for (int i = 0; i < b.n; i++) {
      if (!is_asleep(m, d, m.dof_treeid[b.dofs[i]])) continue;
      throw Unsupported(element_name(m, object::kBody, m.dof_bodyid[b.dofs[i]]),
                        "it sleeps, and a constraint acts on it");
    }
  }
}

}  // namespace

ForwardDynamics start_forward(const ModelView& m, const DataView& d, bool forces,
                              const Blocks* known, Arena& arena) {
  ForwardDynamics f{};
  f.tree = topology(m, arena);
  f.paths.tendon = arena.take<PathForce>(m.ntendon);
  f.paths.tendon_count = tendon_forces(m, d, f.paths.tendon, arena);
  f.paths.actuation = actuation(m, d, arena);

  // trees that constraints couple form one component
  f.blocks = make_blocks(m, d, arena, f.paths.count(), known);
  require_awake_rows(m, d, f.blocks);
  f.residual = make_dof_rows(m, f.blocks, f.paths.actuation.dofs, forces, arena);
  return f;
}

ForwardDynamics evaluate_forward(const ModelView& m, const DataView& d, bool forces, Arena& arena) {
  // forces, rows and components
  require_regular(m, d);
  ForwardDynamics f = start_forward(m, d, forces, nullptr, arena);
  const double* noise = nullptr;
  if (m.opt.noslip_iterations == 0) noise = remove_idle(m, d, f.blocks, arena);
  bool* constrained = arena.zeros<bool>(f.residual.count);
  for (int k = 0; k < f.blocks.count; k++) {
    const Block& b = f.blocks.block[k];
    if (b.n) constrained[f.residual.component[b.dofs[0]]] = true;
  }

  // the constraint problem: MuJoCo's own, or in the metric of the discrete integrator
  f.metric = {d, f.blocks, nullptr};
  if (has_metric(m)) {
    f.metric = make_metric(m, d, f.paths, f.blocks, arena);
    for (int c = 0; c < f.residual.count; c++) constrained[c] = true;
  }
  f.constrained = constrained;

  // its optimum, then the sweeps of the noslip solver
  f.solved = f.acc = d.qacc;
  f.force = d.qfrc_smooth;
  if (f.blocks.count || has_metric(m)) {
    f.optimum = search(m, d, f, arena);
    if (noise) {
      // stiff rows of other contacts may hold these dofs
      double* moved = arena.take<double>(m.nv);
      std::memcpy(moved, noise, m.nv * sizeof(double));
      solve_hessian(m, f.tree, f.optimum, f.residual, moved, arena);
      require_still(m, noise, moved);
    }
    f.solved = f.acc = f.optimum.acc;
    double* force = f.optimum.force;
    if (m.opt.noslip_iterations > 0) {
      f.noslip = sweep_noslip(m, d, f.blocks, f.optimum, arena);
      if (f.noslip.first) f.noslip.start = make_like(m, f.residual, arena);
      f.acc = f.noslip.acc;
      force = f.noslip.force;
    }
    for (int i = 0; i < m.nv; i++) force[i] += d.qfrc_smooth[i];
    f.force = force;
    check_convergence(m, d, f, arena);
  } else {
    solve_again(d);
  }
  return f;
}

void fill_residual(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                   const double* at, Arena& arena) {
  // inertial, applied and passive forces
  const unsigned char* frozen = f.paths.actuation.frozen;
  const Arena::Mark mark = arena.mark();
  inverse_dynamics_derivative(m, d, f.tree, at, f.residual, arena);
  add_tendon_armature(m, d, f.tree, at, f.residual, arena);
  add_applied(m, d, f.residual, arena);
  add_gravity_compensation(m, d, frozen, f.residual, arena);
  add_passive(m, d, f.residual);
  add_fluid(m, d, f.residual, arena);
  arena.rewind(mark);

  // tendons, actuators and constraints
  for (int k = 0; k < f.paths.tendon_count; k++) {
    add_path_force(f.paths.tendon[k], d.qvel, nullptr, f.residual, arena);
  }
  for (int k = 0; k < f.paths.actuation.count; k++) {
    add_path_force(f.paths.actuation.forces[k], d.qvel, frozen, f.residual, arena);
  }
  add_blocks(m, d, f.tree, f.blocks, f.solved, f.residual, arena);

  // the metric of the discrete integrator
  if (!has_metric(m)) return;
  subtract_metric_change(m, d, f.paths, f.metric, at, f.residual, arena);
  if (corrects_rows(m, d, f)) {
    add_effective_diagonal(m, d, f.blocks, diagonal_rates(m, d, f, arena), f.residual, arena);
  }
}

bool corrects_rows(const ModelView& m, const DataView& d, const ForwardDynamics& f) {
  return has_metric(m) && f.blocks.count && d.efm_sdiag;
}

DiagonalRates diagonal_rates(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             Arena& arena) {
  DiagonalRates diagonal{make_like(m, f.residual, arena), make_like(m, f.residual, arena)};
  add_inertia_diagonal_derivative(m, d, diagonal.inertia, arena);
  add_metric_diagonal_change(m, d, f.paths, diagonal.added, arena);
  return diagonal;
}

void solve_acceleration(const ModelView& m, const DataView& d, const ForwardDynamics& f, int c,
                        int first, int last, Arena& arena) {
  const Component& part = f.residual.components[c];
  if (f.constrained[c]) {
    // free bodies have unsymmetric blocks of their own
    const double* freed =
        solve_free_bodies(m, f, part, arena, [&](const TreeBlock& b, double* rows) {
          solve_lu(b.n, b.matrix, b.order, rows, part.stride, first, last, arena);
        });
    solve_hessian(m, f.tree, f.optimum, part, c, first, last);
    if (freed) put_free_bodies(m, f, part, freed);
    return differentiate_noslip(m, d, f.tree, f.blocks, f.optimum, f.noslip, f.residual, c, arena);
  }
  visit_trees(m, part.dofs, part.nv, [&](int, int i, int end) {
    const int dof = part.dofs[i];
    solve_inertia(m, f.tree, {d.qLD, d.qLDiagInv}, dof, end - i, f.residual.row[dof], part.stride,
                  first, last);
  });
}

void solve_acceleration_transposed(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                                   int c, Arena& arena) {
  // K is symmetric, except for the blocks of free bodies
  const Component& part = f.residual.components[c];
  const double* freed = nullptr;
  if (f.constrained[c]) {
    freed = solve_free_bodies(m, f, part, arena, [&](const TreeBlock& b, double* rows) {
      solve_lu_transposed(b.n, b.matrix, b.order, rows, part.stride, arena);
    });
  }
  solve_acceleration(m, d, f, c, 0, 1, arena);
  if (freed) put_free_bodies(m, f, part, freed);
}

}  // namespace mujacobian

#include "dynamics/forward.h"

#include "smooth/external.h"
#include "smooth/fluid.h"
#include "smooth/inverse_dynamics.h"
#include "smooth/passive.h"
#include "smooth/tendon.h"

namespace mujacobian {

Forward evaluate_forward(const ModelView& m, const DataView& d, bool forces, Arena& arena) {
  Forward f{};
  f.tree = topology(m, arena);
  f.paths.tendon = arena.take<PathForce>(m.ntendon);
  f.paths.tendon_count = tendon_forces(m, d, f.paths.tendon, arena);
  f.paths.actuation = actuation(m, d, arena);

  // trees that constraints couple form one component
  f.blocks = make_blocks(m, d, arena);
  f.residual = make_residual(m, f.blocks, f.paths.actuation.dofs, forces, arena);
  bool* constrained = arena.zeros<bool>(f.residual.count);
  for (int k = 0; k < f.blocks.count; k++) {
    const Block& b = f.blocks.block[k];
    if (b.n) constrained[f.residual.component[b.dofs[0]]] = true;
  }
  f.constrained = constrained;

  f.solved = f.acc = d.qacc;
  f.force = d.qfrc_smooth;
  if (f.blocks.count) {
    f.optimum = find_optimum(m, d, f.tree, f.residual, f.blocks, arena);
    f.solved = f.acc = f.optimum.acc;
    double* force = f.optimum.force;
    if (m.opt.noslip_iterations > 0) {
      f.noslip = sweep_noslip(m, d, f.blocks, f.optimum, arena);
      f.acc = f.noslip.acc;
      force = f.noslip.force;
    }
    for (int i = 0; i < m.nv; i++) force[i] += d.qfrc_smooth[i];
    f.force = force;
  }
  return f;
}

void fill_residual(const ModelView& m, const DataView& d, const Forward& f, const double* at,
                   Arena& arena) {
  const unsigned char* frozen = f.paths.actuation.frozen;
  inverse_dynamics_derivative(m, d, f.tree, at, f.residual, arena);
  add_tendon_armature(m, d, f.tree, at, f.residual, arena);
  add_applied(m, d, f.residual, arena);
  add_gravity_compensation(m, d, frozen, f.residual, arena);
  add_passive(m, d, f.residual);
  add_fluid(m, d, f.residual, arena);
  for (int k = 0; k < f.paths.tendon_count; k++) {
    add_path_force(f.paths.tendon[k], d.qvel, nullptr, f.residual, arena);
  }
  for (int k = 0; k < f.paths.actuation.count; k++) {
    add_path_force(f.paths.actuation.forces[k], d.qvel, frozen, f.residual, arena);
  }
  add_blocks(m, d, f.tree, f.blocks, f.solved, f.residual, arena);
}

void solve_acceleration(const ModelView& m, const DataView& d, const Forward& f, int c, int first,
                        int last, Arena& arena) {
  const Component& part = f.residual.components[c];
  if (f.constrained[c]) {
    solve_metric(m, f.tree, f.optimum, part, c, first, last);
    return differentiate_noslip(m, d, f.tree, f.blocks, f.optimum, f.noslip, f.residual, c, arena);
  }
  for (int i = 0; i < part.nv;) {
    int t = m.dof_treeid[part.dofs[i]], num = m.tree_dofnum[t];
    solve_inertia(m, f.tree, {d.qLD, d.qLDiagInv}, m.tree_dofadr[t], num,
                  f.residual.row[part.dofs[i]], part.stride, first, last);
    i += num;
  }
}

}  // namespace mujacobian

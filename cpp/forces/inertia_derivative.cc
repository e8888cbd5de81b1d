#include "forces/inertia_derivative.h"

#include "forces/passive.h"
#include "forces/tendon.h"
#include "layout/enums.h"
#include "spatial/vector.h"
#include "tree/velocity.h"

namespace mujacobian {

void inertia_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                        const double* x, const DofRows& residual, Arena& arena) {
  ModelView weightless = m;
  weightless.opt.disableflags |= disable::kGravity;
  const DataView resting = at_rest(m, d, arena);
  inverse_dynamics_derivative(weightless, resting, tree, x, residual, arena);
  add_tendon_armature(weightless, resting, tree, x, residual, arena);
}

void add_inertia_diagonal_derivative(const ModelView& m, const DataView& d, const DofRows& residual,
                                     Arena& arena) {
  // bodies: dof k moves the inertia of its subtree, but not the axes of its ancestors
  for (int k = 0; k < m.nv; k++) {
    const Inertia inertia{d.crb + 10 * m.dof_bodyid[k]};
    const Motion axis = load_motion(d.cdof + 6 * k);
    for (int j = m.dof_parentid[k]; j >= 0; j = m.dof_parentid[j]) {
      if (moves_axis(m, k, j)) continue;
      const Motion other = load_motion(d.cdof + 6 * j);
      residual.dq(j, k) += 2 * dot(cross(other, axis), inertia * other);
    }
  }
  // tendon armature: the diagonal entry is armature m_i^2
  for (int t = 0; t < m.ntendon; t++) {
    const double armature = tendon_armature(m, t);
    if (armature == 0) continue;
    const Path p = tendon_path(m, d, t, arena);
    for (int i = 0; p.hessian && i < p.n; i++)
      for (int k = 0; k < p.n; k++) {
        residual.dq(p.dofs[i], p.dofs[k]) += 2 * armature * p.moment[i] * p.hessian[i * p.n + k];
      }
  }
}

}  // namespace mujacobian

// Center of mass and momentum of the subtree of a body.
#pragma once

#include "sensor/sensing.h"

namespace mujacobian {

// Calls visit(dof, body) for every dof that moves a part of the subtree of `root`. That part is the
// subtree of `body`.
template <class F>
void visit_subtree(const ModelView& m, int root, F visit) {
  for (int k = last_dof(m, root); k >= 0; k = m.dof_parentid[k]) visit(k, root);
  // bodies are numbered depth first
  for (int b = root + 1; b < m.nbody && m.body_parentid[b] >= root; b++) {
    for (int k = 0; k < m.body_dofnum[b]; k++) visit(m.body_dofadr[b] + k, b);
  }
}

// Returns the change of the root's center of mass with a dof that moves the subtree of `body`.
// (SEN-9)
Vec3 center_jacobian(const ModelView& m, const DataView& d, int root, int dof, int body);

}  // namespace mujacobian

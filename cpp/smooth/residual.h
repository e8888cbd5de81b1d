// The right-hand side -dg of K da = -dg: how the generalized force that is left over changes with
// position, velocity, control and applied force while the acceleration is held.
//
// Trees that no tendon or constraint couples cannot influence one another, so the dofs fall into
// components, each with a dense block: a row per dof, columns (q, v, ctrl, applied force) of the
// same component.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

struct Component {
  int nv, nu, nf;    // dofs, controls, applied-force columns (0 or nv)
  const int* dofs;   // the dofs, increasing
  const int* ctrls;  // the controls
  int stride;        // distance of rows: the number of columns, padded to cache lines
  double* x;         // nv rows
};

struct Residual {
  int count;  // number of components
  Component* components;
  double** row;            // row of each dof
  const int* column;       // column of each dof within its component
  const int* component;    // component of each dof
  const int* ctrl_column;  // column of each control, -1 if it moves nothing

  double& dq(int i, int k) const { return row[i][column[k]]; }
  double& dv(int i, int k) const { return row[i][column[k] + components[component[k]].nv]; }
  double& du(int i, int ctrl) const { return row[i][ctrl_column[ctrl]]; }
};

// Dofs that influence one another, beyond those of one tree or one tendon.
struct Coupling {
  const int* dofs;
  int n;
};

// An empty (zero) residual; `forces` adds the columns of qfrc_applied, set to the identity.
Residual make_residual(const ModelView& m, const DataView& d, const Coupling* couplings, int count,
                       bool forces, Arena& arena);

// A zero residual with the same components as `other`.
Residual make_like(const ModelView& m, const Residual& other, Arena& arena);

}  // namespace mujacobian

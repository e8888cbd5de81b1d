// Matrices with one row per dof. The most important one is the residual, the right-hand side -dg of
// K da = -dg: the derivative of the unbalanced generalized force with respect to position,
// velocity, activation, control and applied force, at fixed acceleration.
//
// Kinematic trees that share no tendon, actuator or constraint do not influence one another. The
// dofs therefore form components. Each component has a dense block with a row per dof and the
// columns (q, v, act, ctrl, applied force) of the same component.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

struct Component {
  int nv, na, nu, nf;  // number of dofs, activations, controls, applied forces (0 or nv)
  const int* dofs;     // the dofs, increasing
  const int* acts;     // the activations, increasing
  const int* ctrls;    // the controls, increasing
  int stride;          // distance between rows: the number of columns, padded to cache lines
  double* x;           // nv rows

  // first column of each kind of input
  int act_column() const { return 2 * nv; }
  int ctrl_column() const { return 2 * nv + na; }
  int force_column() const { return 2 * nv + na + nu; }
  int end_column() const { return force_column() + nf; }
};

struct DofRows {
  int count;  // number of components
  Component* components;
  double** row;             // row of each dof
  const int* column;        // column of each dof within its component
  const int* component;     // component of each dof
  const int* input_column;  // column of each input, -1 if it has no effect

  double& dq(int i, int k) const { return row[i][column[k]]; }
  double& dv(int i, int k) const { return row[i][column[k] + components[component[k]].nv]; }
  // inputs are the activations, then the controls
  double& du(int i, int input) const { return row[i][input_column[input]]; }
};

// Calls visit(tree, first, last) for each kinematic tree among the dofs of a list, which has the
// dofs of a tree next to each other: entries first .. last-1 belong to this tree.
template <class F>
void visit_trees(const ModelView& m, const int* dofs, int n, F visit) {
  for (int first = 0, last; first < n; first = last) {
    const int tree = m.dof_treeid[dofs[first]];
    for (last = first + 1; last < n && m.dof_treeid[dofs[last]] == tree;) last++;
    visit(tree, first, last);
  }
}

// Calls visit(column, input, index) for every column of a component: `index` is its place in the
// state (input 0), the controls (1) or the applied forces (2).
template <class F>
void visit_columns(const ModelView& m, const Component& part, F visit) {
  for (int k = 0; k < part.nv; k++) {
    visit(k, 0, part.dofs[k]);
    visit(part.nv + k, 0, m.nv + part.dofs[k]);
  }
  for (int k = 0; k < part.na; k++) visit(part.act_column() + k, 0, 2 * m.nv + part.acts[k]);
  for (int k = 0; k < part.nu; k++) visit(part.ctrl_column() + k, 1, part.ctrls[k]);
  for (int k = 0; k < part.nf; k++) visit(part.force_column() + k, 2, part.dofs[k]);
}

// Dofs that influence one another, in addition to the dofs of one tree or tendon.
struct Coupling {
  const int* dofs;
  int n;
};

// Returns a residual that is zero. `actuators` lists the dofs that each actuator moves or depends
// on; null means none. `forces` adds the columns of qfrc_applied, which are set to the identity.
DofRows make_dof_rows(const ModelView& m, const Coupling* couplings, int count,
                      const Coupling* actuators, bool forces, Arena& arena);

// Returns a matrix of zeros with the same components and columns as `other`.
DofRows make_like(const ModelView& m, const DofRows& other, Arena& arena);

// Returns a vector of zeros over the dofs of the same components: one column, padded to lanes.
DofRows make_vector(const ModelView& m, const DofRows& other, Arena& arena);

// Returns a matrix of zeros with the same components and `count` columns.
DofRows make_columns(const ModelView& m, const DofRows& other, int count, Arena& arena);

}  // namespace mujacobian

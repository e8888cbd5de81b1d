// The second derivative of a scalar function of the variables of a step: the columns z = (q, v,
// act, ctrl, applied force) of each component, and an acceleration per dof.
// docs/derivations/second_order.md.
#pragma once

#include "tree/dof_rows.h"

namespace mujacobian {

struct QuadraticForm {
  DofRows layout;  // components and columns; its rows are not used
  double** half;   // per component (columns padded to lanes, stride): G, where the Hessian over z
                   // is G + G^T
  double** mixed;  // per dof: derivatives with respect to its acceleration and the columns z

  // row of G for the position or the velocity of a dof
  double* q(int i) const { return half_row(i, q_column(i)); }
  double* v(int i) const { return half_row(i, v_column(i)); }
  // columns of the position and of the velocity of a dof
  int q_column(int i) const { return layout.column[i]; }
  int v_column(int i) const { return layout.column[i] + layout.components[layout.component[i]].nv; }
  // Adds `value` to the second derivative with respect to columns j and k of the component of dof
  // i.
  void add(int i, int j, int k, double value) const {
    half_row(i, j)[k] += j == k ? 0.5 * value : value;
  }

  // row of G for a column of the component of dof i
  double* half_row(int i, int column) const {
    const int c = layout.component[i];
    return half[c] + static_cast<std::ptrdiff_t>(column) * layout.components[c].stride;
  }
};

// Returns a form that is zero, over the components of `residual`.
QuadraticForm make_quadratic_form(const ModelView& m, const DofRows& residual, Arena& arena);

}  // namespace mujacobian

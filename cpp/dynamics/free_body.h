// The bias force of a free body without further joints, which implicitfast treats implicitly:
//   c = (R f, s x f + r x I r),  f = m r x (r x s)
// Here r is the angular velocity, s the center of mass and I the inertia about it, all in the frame
// of the body and including welded bodies, and R is its orientation. c is quadratic in r: (dc/dv) w
// = Q(r, w) with Q bilinear and symmetric. docs/derivations/integrators.md.
#pragma once

#include "tree/dof_rows.h"

namespace mujacobian {

// a += h dc/dv, a 6x6 matrix in the order of the dofs of the free joint, with rows `stride` apart.
void add_free_bias_rate(const ModelView& m, const DataView& d, int body, double h, double* a,
                        int stride = 6);

// Subtracts h d((dc/dv) w) from the residual.                                           (INT-7)
void subtract_free_bias_change(const ModelView& m, const DataView& d, int body, double h,
                               const double w[6], const DofRows& residual);

}  // namespace mujacobian

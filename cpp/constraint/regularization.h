// The dependence of the forces of a block on R, which is proportional to MuJoCo's approximate
// diagonal.
#pragma once

#include "constraint/contact.h"
#include "constraint/exact_diagonal.h"
#include "layout/enums.h"

namespace mujacobian {

// Calls visit(source, force) for the rows of the block whose R is not at its lower bound. force[r]
// is the derivative of the force of row r with respect to log R at fixed acceleration.
template <class F>
void visit_regularization(const DataView& d, const Block& b, F visit) {
  if (!b.active || b.n == 0) return;
  bool dry = b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon;
  if (dry && b.hessian[0] == 0) return;  // saturated: the force does not depend on D
  // adhesion adds R adhesion to the reference acceleration, which changes with D, too
  const double shift = b.geometry ? adhesive_reference(d, b) : 0;
  Source source[kMaxRows];
  for (int s = 0, count = sources(b, source); s < count; s++) {
    if (has_least_softness(d, b.row + s)) continue;
    double force[kMaxRows] = {};
    for (int r = source[s].first; r < source[s].last; r++) {
      force[r] = b.hessian[r * b.count] * shift - b.force[r];
    }
    visit(source[s], force);
  }
}

}  // namespace mujacobian

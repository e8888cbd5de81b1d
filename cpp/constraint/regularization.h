// The dependence of the forces of a block on R, which is proportional to MuJoCo's approximate
// diagonal.
#pragma once

#include "constraint/exact_diagonal.h"
#include "layout/enums.h"

namespace mujacobian {

// Calls visit(source, force) for the rows of the block whose R is not at its lower bound. force[r]
// is the derivative of the force of row r with respect to log R at fixed acceleration.
template <class F>
void visit_regularization(const DataView& d, const Block& b, F visit) {
  if (!b.active || b.n == 0 || !depends_on_diagonal(b)) return;
  Source source[kMaxRows];
  for (int s = 0, count = sources(b, source); s < count; s++) {
    if (has_least_softness(d, b, s)) continue;
    double force[kMaxRows] = {};
    for (int r = source[s].first; r < source[s].last; r++) {
      force[r] = -force_by_log_stiffness(d, b, r);
    }
    visit(source[s], force);
  }
}

}  // namespace mujacobian

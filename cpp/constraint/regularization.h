// How the forces of a block depend on R, which scales with the diagonal that MuJoCo approximates.
#pragma once

#include "constraint/exact_diagonal.h"
#include "layout/enums.h"

namespace mujacobian {

// Hand the rows of the block whose R is not at its floor to visit(source, force): force[r] is what
// a unit of dlogR does to the force of row r at fixed acceleration.
template <class F>
void visit_regularization(const DataView& d, const Block& b, F visit) {
  if (!b.active || b.n == 0) return;
  bool dry = b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon;
  if (dry && b.hessian[0] == 0) return;  // saturated: the force does not depend on D
  // adhesion shifts the reference by R adhesion, which changes with D too
  double shift = 0;
  if (b.geometry) shift = b.contact.adhesion * d.efc_R[b.row] / (b.edges == b.count ? 1 : b.edges);
  Source source[kMaxRows];
  for (int s = 0, count = sources(b, source); s < count; s++) {
    if (d.efc_R[b.row + s] <= kMinVal) continue;  // held at its floor
    double force[kMaxRows] = {};
    for (int r = source[s].first; r < source[s].last; r++) {
      force[r] = b.hessian[r * b.count] * shift - b.force[r];
    }
    visit(source[s], force);
  }
}

}  // namespace mujacobian

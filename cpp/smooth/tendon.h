// Tendons: paths through joints, sites, pulleys and around geoms, with springs, dampers, armature.
// docs/derivations/tendons.md.
#pragma once

#include "smooth/path.h"

namespace mujacobian {

// The tendon as a path, with d(ten_J)/dq for spatial tendons.
Path tendon_path(const ModelView& m, const DataView& d, int tendon, Arena& arena);

// Springs and dampers of all tendons as path forces, written to `forces` (room for ntendon);
// returns their number.
int tendon_forces(const ModelView& m, const DataView& d, PathForce* forces, Arena& arena);

// Subtract d(M_t a + c_t) for the inertia that tendon armature adds to M and to the bias force.
void add_tendon_armature(const ModelView& m, const DataView& d, const Topology& tree,
                         const double* acc, const Residual& residual, Arena& arena);

// The tendon passes over geoms (sphere or cylinder wrapping).
bool tendon_wraps(const ModelView& m, int tendon);

// M stores the entry (i, j): one is an ancestor of the other, and neither is a dof that MuJoCo
// treats as a constant diagonal.
inline bool in_mass_matrix(const ModelView& m, const Topology& tree, int i, int j) {
  if (i == j) return true;
  int lower = i > j ? i : j;
  return tree.is_related(i, j) && m.M_rownnz[lower] > 1;
}

}  // namespace mujacobian

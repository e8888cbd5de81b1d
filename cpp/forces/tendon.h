// Tendons: paths through joints, or through sites, over pulleys and around geoms. They have
// springs, dampers and armature. docs/derivations/tendons.md.
#pragma once

#include "forces/passive.h"
#include "tree/motion.h"
#include "tree/path.h"

namespace mujacobian {

// Returns the tendon as a path, with d(ten_J)/dq for spatial tendons.
Path tendon_path(const ModelView& m, const DataView& d, int tendon, Arena& arena);

// Returns the moment of a spatial tendon, computed from its points: ten_J over the dofs of its row.
const double* tendon_moment(const ModelView& m, const DataView& d, int tendon, Arena& arena);

// Returns whether the tendon passes through joints, so that its row is constant.
bool tendon_is_fixed(const ModelView& m, int tendon);

// Returns the indices of the dofs of the tendon within its row, and 0 for other dofs. MuJoCo's row
// contains every dof that moves one of the bodies of the tendon.
int* tendon_indices(const ModelView& m, int tendon, Arena& arena);

// Returns the stiffness of a tendon, zero if springs are disabled.
Poly acting_stiffness(const ModelView& m, int tendon);

// Computes the spring and damper force of one tendon along its path. Returns false if it has none.
bool tendon_force(const ModelView& m, const DataView& d, int tendon, const Path& path,
                  PathForce& force);

// Writes the spring and damper forces of all tendons to `forces` (room for ntendon), and returns
// their number.
int tendon_forces(const ModelView& m, const DataView& d, PathForce* forces, Arena& arena);

// Writes the second derivatives of the forces that tendon_forces has written.
void tendon_curvatures(const ModelView& m, const DataView& d, const PathForce* forces,
                       PathCurvature* out, Arena& arena);

// Subtracts d(M_t a + c_t), where M_t and c_t are the parts of tendon armature in M and in the bias
// force.
void add_tendon_armature(const ModelView& m, const DataView& d, const Topology& tree,
                         const double* acc, const DofRows& residual, Arena& arena);

// Acceleration of the length of a spatial tendon, ten_J a + d(ten_J)/dt v, and its derivatives with
// respect to the dofs of the tendon at fixed `acc`. `still` is the sweep at zero acceleration
// without gravity.
struct TendonAcceleration {
  double value;
  double *dq, *dv;
};
TendonAcceleration tendon_acceleration(const ModelView& m, const DataView& d, int tendon,
                                       const Path& path, const double* acc,
                                       const MotionSweep& still, Arena& arena);

// Derivatives of the length of a spatial tendon with respect to virtual motions z of the subtree of
// `body`. The motions turn with this body.                                              (SEN-21)
struct TendonPull {
  bool any;        // the tendon leaves the subtree
  double* value;   // dl/dz for each motion
  double* change;  // d2l/(dz dq_k), (motions, dofs of the tendon)
};
TendonPull tendon_pull(const ModelView& m, const DataView& d, int tendon, int body,
                       const Motion* motions, int count, Arena& arena);

// Returns whether the tendon wraps around geoms (spheres or cylinders).
bool tendon_wraps(const ModelView& m, int tendon);

}  // namespace mujacobian

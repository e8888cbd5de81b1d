// Tendons: paths through joints, sites, pulleys and around geoms, with springs, dampers, armature.
// docs/derivations/tendons.md.
#pragma once

#include "tree/motion.h"
#include "tree/path.h"

namespace mujacobian {

// The tendon as a path, with d(ten_J)/dq for spatial tendons.
Path tendon_path(const ModelView& m, const DataView& d, int tendon, Arena& arena);

// The moment of a spatial tendon, as its path says: ten_J, over the dofs of the tendon's row.
const double* tendon_moment(const ModelView& m, const DataView& d, int tendon, Arena& arena);

// Its row is constant: it passes through joints.
bool tendon_is_fixed(const ModelView& m, int tendon);

// Spring and damper of one tendon along its path; false if it has none.
bool tendon_force(const ModelView& m, const DataView& d, int tendon, const Path& path,
                  PathForce& force);

// Springs and dampers of all tendons as path forces, written to `forces` (room for ntendon);
// returns their number.
int tendon_forces(const ModelView& m, const DataView& d, PathForce* forces, Arena& arena);

// Subtract d(M_t a + c_t) for the inertia that tendon armature adds to M and to the bias force.
void add_tendon_armature(const ModelView& m, const DataView& d, const Topology& tree,
                         const double* acc, const DofRows& residual, Arena& arena);

// Acceleration of a spatial tendon's length, ten_J a + d(ten_J)/dt v, and its derivative with
// respect to the tendon's dofs at fixed `acc`; `still` is the sweep at zero acceleration without
// gravity.
struct TendonAcceleration {
  double value;
  double *dq, *dv;
};
TendonAcceleration tendon_acceleration(const ModelView& m, const DataView& d, int tendon,
                                       const Path& path, const double* acc,
                                       const MotionSweep& still, Arena& arena);

// What a unit of force along a spatial tendon does against virtual motions of everything under
// `body`, which is carried along with that body: dl/dz and d2l/(dz dq_k).               (SEN-21)
struct TendonPull {
  bool any;        // the tendon leaves the subtree
  double* value;   // of each motion
  double* change;  // (motions, dofs of the tendon)
};
TendonPull tendon_pull(const ModelView& m, const DataView& d, int tendon, int body,
                       const Motion* motions, int count, Arena& arena);

// The tendon passes over geoms (sphere or cylinder wrapping).
bool tendon_wraps(const ModelView& m, int tendon);

}  // namespace mujacobian

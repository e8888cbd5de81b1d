// Actuator transmissions as paths: joints, tendons, sites, slider-cranks and adhesive bodies.
// docs/derivations/transmissions.md.
#pragma once

#include "tree/path.h"

namespace mujacobian {

// The path of an actuator with one output, moments including its gear; for a tendon the tendon's
// own path, without the gear. `tendon_paths` caches the paths of tendons (n < 0: not computed yet).
Path transmission_path(const ModelView& m, const DataView& d, int actuator, Path* tendon_paths,
                       Arena& arena);

// Three outputs: the relative orientation of two frames.
struct OrientationPath {
  Path axis[3];           // moments about the axes of the moving frame, all over the same dofs
  const double* tangent;  // (3, n): its rotation relative to the other, in its own axes
};
OrientationPath orientation_path(const ModelView& m, const DataView& d, int actuator, Arena& arena);

// Why the transmission is not covered, null if it is.
const char* transmission_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

// Actuator transmissions as paths: joints, tendons and sites.
#pragma once

#include "smooth/path.h"

namespace mujacobian {

// The path of an actuator, moments including its gear; for a tendon the tendon's own path, without
// the gear. `tendon_paths` caches the paths of tendons (n < 0: not computed yet).
Path transmission_path(const ModelView& m, const DataView& d, int actuator, Path* tendon_paths,
                       Arena& arena);

// Why the transmission is not covered, null if it is.
const char* transmission_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

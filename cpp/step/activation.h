// The rows of activations in A and B.
#pragma once

#include "smooth/actuation.h"
#include "step/transition.h"

namespace mujacobian {

// Write d(next activation) with respect to position, velocity, activations and controls into rows
// that are zero on entry.                                                                (ACN-7)
void write_activations(const ModelView& m, const DataView& d, const Actuation& actuation,
                       const Outputs& out, Arena& arena);

}  // namespace mujacobian

// Second derivatives of the length and the moments of a spatial tendon.
// docs/derivations/second_order.md.
#pragma once

#include "tree/path.h"

namespace mujacobian {

// Returns the tendon as the source of a path, or no source if it passes through joints.
PathSource tendon_source(const ModelView& m, int tendon);

// Returns d2l/dq2 and d2(y . m)/dq2 over the dofs of a tendon, for a joint motion `y` (nv). It
// is zero if the tendon passes through joints.
PathBend tendon_bend(const ModelView& m, const DataView& d, int tendon, const double* y,
                     Arena& arena);

}  // namespace mujacobian

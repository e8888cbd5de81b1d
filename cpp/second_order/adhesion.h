// Second derivatives of the moments of adhesive bodies. docs/derivations/second_order.md.
#pragma once

#include "tree/path.h"

namespace mujacobian {

// Returns d2(y . m)/dq2 over the dofs of the path of an adhesive actuator, for a joint motion `y`
// (nv). Throws Unsupported if one of its contacts has no second derivative.              (HES-56)
PathBend adhesion_bend(const ModelView& m, const DataView& d, int actuator, const double* y,
                       Arena& arena);

}  // namespace mujacobian

// The impedance of a constraint row as a function of its position.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// Values with their first two derivatives with respect to the position of a row.
struct RowImpedance {
  double spring[3];  // k imp (pos - margin), which the reference acceleration contains
  double scale[3];   // D, relative to its present value
};

// Returns them for the first row of a block whose impedance has the parameters `solimp`, at the
// distance pos - margin = `gap`.                                                          (HES-25)
RowImpedance row_impedance(const DataView& d, const Block& block, const double* solimp, double gap);

}  // namespace mujacobian

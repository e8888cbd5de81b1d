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
// Throws Unsupported at distance zero if the impedance has no second derivative there.    (HES-39)
RowImpedance row_impedance(const ModelView& m, const DataView& d, const Block& block,
                           const double* solimp, double gap);

// The same if the position of the row is replaced by the length of a vector of positions. A ratio
// is a slope divided by the length; it remains finite at zero.
struct LengthImpedance {
  double imp[2], imp_ratio[2];      // impedance, and its ratio, with their derivatives
  double scale[2], scale_ratio[2];  // D relative to its present value, and its ratio
};

// Throws Unsupported at length zero as above.
LengthImpedance length_impedance(const ModelView& m, const DataView& d, const Block& block,
                                 const double* solimp, double length);

}  // namespace mujacobian

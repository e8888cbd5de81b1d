#include "second_order/impedance.h"

#include <cmath>

#include "layout/enums.h"

namespace mujacobian {
namespace {

// Returns the second derivative of the impedance, from its slope: the curve is a power of x or of
// 1 - x, where x is the distance |gap| / width.
double impedance_curvature(const double* solimp, double gap, double slope) {
  if (slope == 0) return 0;
  const double x = std::abs(gap) / solimp[2], power = std::fmax(1, solimp[4]);
  const double middle = std::fmin(std::fmax(solimp[3], kMinImp), kMaxImp);
  // the branch of MuJoCo's own curve
  const double ratio = x <= middle ? (power - 1) / x : -(power - 1) / (1 - x);
  return std::copysign(1 / solimp[2], gap) * ratio * slope;
}

}  // namespace

RowImpedance row_impedance(const DataView& d, const Block& b, const double* solimp, double gap) {
  const double* kbip = d.efc_KBIP + 4 * b.row;
  const double k = kbip[0], imp = kbip[2], slope = kbip[3];
  const double bend = impedance_curvature(solimp, gap, slope);
  RowImpedance r{{k * imp * gap, k * (imp + slope * gap), k * (2 * slope + bend * gap)}, {1, 0, 0}};
  // R at its floor is a constant
  if (has_least_softness(d, b.row)) return r;
  const double odds = 1 / (imp * (1 - imp));
  r.scale[1] = slope * odds;
  r.scale[2] = bend * odds + 2 * slope * slope * imp * odds * odds;
  return r;
}

}  // namespace mujacobian

#include "second_order/impedance.h"

#include <cmath>

#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// A position is zero up to rounding errors of the kinematics.
constexpr double kSatisfied = 1e-12;

double power_of(const double* solimp) { return std::fmax(1, solimp[4]); }

// Returns whether the position is zero. Closer to zero than rounding, an impedance with a power
// below 2 has a second derivative that is unbounded or depends on the sign of the error.
bool is_zero(const double* solimp, double gap) {
  return gap == 0 || (power_of(solimp) < 2 && std::abs(gap) < kSatisfied);
}

// Returns the second derivative of the impedance, from its slope: the curve is a power of x or of
// 1 - x, where x is the distance |gap| / width.
double impedance_curvature(const double* solimp, double gap, double slope) {
  if (slope == 0) return 0;
  const double x = std::abs(gap) / solimp[2], power = power_of(solimp);
  const double middle = std::fmin(std::fmax(solimp[3], kMinImp), kMaxImp);
  // the branch of MuJoCo's own curve
  const double ratio = x <= middle ? (power - 1) / x : -(power - 1) / (1 - x);
  return std::copysign(1 / solimp[2], gap) * ratio * slope;
}

// Returns the limit of the slope of the impedance divided by the distance, at distance zero.
// (HES-39)
double ratio_at_zero(const ModelView& m, const Block& b, const double* solimp) {
  auto clip = [](double x) { return std::fmin(std::fmax(x, kMinImp), kMaxImp); };
  const double rise = clip(solimp[1]) - clip(solimp[0]), power = power_of(solimp);
  if (rise == 0 || solimp[2] <= kMinVal || power > 2) return 0;
  if (power < 2) {
    throw Unsupported(row_name(m, b),
                      "second derivatives of an impedance with a power below 2 are not supported "
                      "at position zero");
  }
  return 2 * rise / (clip(solimp[3]) * solimp[2] * solimp[2]);
}

}  // namespace

RowImpedance row_impedance(const ModelView& m, const DataView& d, const Block& b,
                           const double* solimp, double gap) {
  const double* kbip = d.efc_KBIP + 4 * b.row;
  const double k = kbip[0], imp = kbip[2], slope = kbip[3];
  const double bend =
      is_zero(solimp, gap) ? ratio_at_zero(m, b, solimp) : impedance_curvature(solimp, gap, slope);
  RowImpedance r{{k * imp * gap, k * (imp + slope * gap), k * (2 * slope + bend * gap)}, {1, 0, 0}};
  // R at its floor is a constant
  if (has_least_softness(d, b)) return r;
  const double odds = 1 / (imp * (1 - imp));
  r.scale[1] = slope * odds;
  r.scale[2] = bend * odds + 2 * slope * slope * imp * odds * odds;
  return r;
}

LengthImpedance length_impedance(const ModelView& m, const DataView& d, const Block& b,
                                 const double* solimp, double length) {
  const double *kbip = d.efc_KBIP + 4 * b.row, imp = kbip[2], slope = kbip[3];
  const bool zero = is_zero(solimp, length);
  const double bend = impedance_curvature(solimp, length, slope);
  const double ratio = zero ? ratio_at_zero(m, b, solimp) : slope / length;
  LengthImpedance r{{imp, slope}, {ratio, zero ? 0 : (bend - ratio) / length}, {1, 0}, {0, 0}};
  if (has_least_softness(d, b)) return r;
  const double odds = 1 / (imp * (1 - imp));
  const double scale_bend = bend * odds + 2 * slope * slope * imp * odds * odds;
  r.scale[1] = slope * odds;
  r.scale_ratio[0] = ratio * odds;
  r.scale_ratio[1] = zero ? 0 : (scale_bend - ratio * odds) / length;
  return r;
}

}  // namespace mujacobian

#include "actuation/muscle.h"

#include <cmath>

#include "layout/enums.h"

namespace mujacobian {
namespace {

double guard(double x) { return std::fmax(kMinVal, x); }

// Value, slope and curvature of a curve.
struct Curve {
  double y, slope, curvature;
};

// Returns a half parabola: sign x^2 / 2 + value at x = (at - start) / width.
Curve parabola(double at, double start, double width, double value, double sign) {
  double x = (at - start) / width;
  return {value + sign * 0.5 * x * x, sign * x / width, sign / (width * width)};
}

// Returns the force-length curve: four half parabolas that meet with equal slopes.        (MUS-2)
Curve length_curve(double l, double lower, double upper) {
  // tie: lengths of a muscle
  if (!(lower <= l && l <= upper)) return {0, 0, 0};
  double left = 0.5 * (lower + 1), right = 0.5 * (1 + upper);
  // tie: muscle half way to its optimum
  if (l <= left) return parabola(l, lower, guard(left - lower), 0, 1);
  // tie: optimum length of a muscle
  if (l <= 1) return parabola(l, 1, guard(1 - left), 1, -1);
  // tie: muscle half way from its optimum
  if (l <= right) return parabola(l, 1, guard(right - 1), 1, -1);
  return parabola(l, upper, guard(upper - right), 0, 1);
}

// Returns the force-velocity curve.                                                       (MUS-3)
Curve velocity_curve(double v, double most) {
  double y = most - 1;
  // tie: greatest speed of a muscle
  if (v <= -1) return {0, 0, 0};
  // tie: muscle without speed
  if (v <= 0) return {(v + 1) * (v + 1), 2 * (v + 1), 2};
  // tie: greatest pull of a muscle
  if (v > y) return {most, 0, 0};
  return {most - (y - v) * (y - v) / guard(y), 2 * (y - v) / guard(y), -2 / guard(y)};
}

// MuJoCo's parameters of a muscle, in units of its optimal length.                        (MUS-1)
struct Muscle {
  double force, scale, offset;  // normalized length = offset + length / scale
  double lower, upper, speed, passive, eccentric;
};

Muscle load_muscle(const ModelView& m, int actuator, const double* prm) {
  int out = m.actuator_outadr[actuator];
  const double* range = m.actuator_lengthrange + 2 * out;
  double optimum = (range[1] - range[0]) / guard(prm[1] - prm[0]);
  Muscle s;
  s.force = prm[2] < 0 ? prm[3] / guard(m.actuator_acc0[out]) : prm[2];
  s.scale = guard(optimum);
  s.offset = prm[0] - range[0] / s.scale;
  s.lower = prm[4], s.upper = prm[5], s.passive = prm[7], s.eccentric = prm[8];
  s.speed = guard(optimum * prm[6]);
  return s;
}

// Returns 6 x^5 - 15 x^4 + 10 x^3 between 0 and 1, constant outside.
Curve sigmoid(double x) {
  // tie: start of smoothing
  if (x <= 0) return {0, 0, 0};
  // tie: end of smoothing
  if (x >= 1) return {1, 0, 0};
  return {x * x * x * (x * (6 * x - 15) + 10), 30 * x * x * (x - 1) * (x - 1),
          60 * x * (x - 1) * (2 * x - 1)};
}

}  // namespace

template <class T>
MuscleGain<T> muscle_gain(const ModelView& m, int actuator, const T& length, const T& rate) {
  Muscle s = load_muscle(m, actuator, m.actuator_gainprm + kNGain * actuator);
  Curve l = length_curve(s.offset + length.v / s.scale, s.lower, s.upper);
  Curve v = velocity_curve(rate.v / s.speed, s.eccentric);
  // the curves and their slopes; the curvatures of parabolas are constant
  const T of_length = chain(l.y, l.slope / s.scale, l.curvature / (s.scale * s.scale), length);
  const T of_rate = chain(v.y, v.slope / s.speed, v.curvature / (s.speed * s.speed), rate);
  const T length_slope = chain(l.slope / s.scale, l.curvature / (s.scale * s.scale), 0, length);
  const T rate_slope = chain(v.slope / s.speed, v.curvature / (s.speed * s.speed), 0, rate);
  return {(-s.force) * (of_length * of_rate), (-s.force) * (of_length * rate_slope),
          (-s.force) * (length_slope * of_rate)};
}

template <class T>
MuscleBias<T> muscle_bias(const ModelView& m, int actuator, const T& length) {
  // zero up to the optimal length, then a half parabola, then a straight line             (MUS-4)
  Muscle s = load_muscle(m, actuator, m.actuator_biasprm + kNBias * actuator);
  double l = s.offset + length.v / s.scale, knee = 0.5 * (1 + s.upper), width = guard(knee - 1);
  // tie: start of passive force
  if (l <= 1) return {T(0), T(0)};
  // tie: knee of passive force
  Curve c = l <= knee ? parabola(l, 1, width, 0, 1) : Curve{0.5 + (l - knee) / width, 1 / width, 0};
  double most = -s.force * s.passive;
  const double curvature = most * c.curvature / (s.scale * s.scale);
  return {chain(most * c.y, most * c.slope / s.scale, curvature, length),
          chain(most * c.slope / s.scale, curvature, 0, length)};
}

template <class T>
T muscle_activation_rate(const double* prm, const T& ctrl, const T& act,
                         const MuscleBounds& bounds) {
  const double unit[2] = {0, 1};
  T excess = clamp(ctrl, unit) - act;
  T level = 1.5 * clamp(act, unit) + 0.5;
  T rise = prm[0] * level, fall = prm[1] / level;
  // tie: settled muscle
  if (excess.v == 0 && prm[2] < kMinVal) {
    // The rising and the falling branch meet here. A control at its lower bound can only grow, and
    // an activation at its upper bound can only fall. Both lead to the rising branch.       (MUS-7)
    // tie: least control of a muscle
    const double ctrl_tau = ctrl.v <= bounds.least_control ? rise.v : fall.v;
    // tie: greatest activation of a muscle
    const double act_tau = act.v >= bounds.most_activation ? rise.v : fall.v;
    T rate = (1 / guard(ctrl_tau)) * clamp(ctrl, unit) - (1 / guard(act_tau)) * act;
    rate.v = 0;
    return rate;
  }
  T tau = excess.v > 0 ? rise : fall;
  // tie: smoothed muscle
  if (prm[2] >= kMinVal) {  // smooth switch                                               (MUS-6)
    Curve s = sigmoid(excess.v / prm[2] + 0.5);
    tau = fall +
          (rise - fall) * chain(s.y, s.slope / prm[2], s.curvature / (prm[2] * prm[2]), excess);
  }
  return excess / (tau.v < kMinVal ? T(kMinVal) : tau);
}

// for Number and CurvedNumber
template MuscleGain<Number> muscle_gain(const ModelView&, int, const Number&, const Number&);
template MuscleBias<Number> muscle_bias(const ModelView&, int, const Number&);
template Number muscle_activation_rate(const double*, const Number&, const Number&,
                                       const MuscleBounds&);
template MuscleGain<CurvedNumber> muscle_gain(const ModelView&, int, const CurvedNumber&,
                                              const CurvedNumber&);
template MuscleBias<CurvedNumber> muscle_bias(const ModelView&, int, const CurvedNumber&);
template CurvedNumber muscle_activation_rate(const double*, const CurvedNumber&,
                                             const CurvedNumber&, const MuscleBounds&);

}  // namespace mujacobian

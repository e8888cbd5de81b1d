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
  return {x * x * x * (x * (6 * x - 15) + 10), 30 * x * x * (x - 1) * (x - 1), 0};
}

}  // namespace

MuscleGain muscle_gain(const ModelView& m, int actuator, const Number& length, const Number& rate) {
  Muscle s = load_muscle(m, actuator, m.actuator_gainprm + kNGain * actuator);
  Curve l = length_curve(s.offset + length.v / s.scale, s.lower, s.upper);
  Curve v = velocity_curve(rate.v / s.speed, s.eccentric);
  MuscleGain g;
  g.gain = chain(-s.force * l.y * v.y, -s.force * l.slope * v.y / s.scale, length,
                 -s.force * l.y * v.slope / s.speed, rate);
  g.rate_slope =
      chain(-s.force * l.y * v.slope / s.speed, -s.force * l.slope * v.slope / (s.speed * s.scale),
            length, -s.force * l.y * v.curvature / (s.speed * s.speed), rate);
  g.length_slope =
      chain(-s.force * l.slope * v.y / s.scale, -s.force * l.curvature * v.y / (s.scale * s.scale),
            length, -s.force * l.slope * v.slope / (s.speed * s.scale), rate);
  return g;
}

MuscleBias muscle_bias(const ModelView& m, int actuator, const Number& length) {
  // zero up to the optimal length, then a half parabola, then a straight line             (MUS-4)
  Muscle s = load_muscle(m, actuator, m.actuator_biasprm + kNBias * actuator);
  double l = s.offset + length.v / s.scale, knee = 0.5 * (1 + s.upper), width = guard(knee - 1);
  // tie: start of passive force
  if (l <= 1) return {Number(0), Number(0)};
  // tie: knee of passive force
  Curve c = l <= knee ? parabola(l, 1, width, 0, 1) : Curve{0.5 + (l - knee) / width, 1 / width, 0};
  double most = -s.force * s.passive;
  return {chain(most * c.y, most * c.slope / s.scale, length),
          chain(most * c.slope / s.scale, most * c.curvature / (s.scale * s.scale), length)};
}

Number muscle_activation_rate(const double* prm, const Number& ctrl, const Number& act,
                              const MuscleBounds& bounds) {
  const double unit[2] = {0, 1};
  Number excess = clamp(ctrl, unit) - act;
  Number level = 1.5 * clamp(act, unit) + 0.5;
  Number rise = prm[0] * level, fall = prm[1] / level;
  // tie: settled muscle
  if (excess.v == 0 && prm[2] < kMinVal) {
    // The rising and the falling branch meet here. A control at its lower bound can only grow, and
    // an activation at its upper bound can only fall. Both lead to the rising branch.       (MUS-7)
    // tie: least control of a muscle
    const double ctrl_tau = ctrl.v <= bounds.least_control ? rise.v : fall.v;
    // tie: greatest activation of a muscle
    const double act_tau = act.v >= bounds.most_activation ? rise.v : fall.v;
    return chain(0, 1 / guard(ctrl_tau), clamp(ctrl, unit), -1 / guard(act_tau), act);
  }
  Number tau = excess.v > 0 ? rise : fall;
  // tie: smoothed muscle
  if (prm[2] >= kMinVal) {  // smooth switch                                               (MUS-6)
    Curve s = sigmoid(excess.v / prm[2] + 0.5);
    tau = fall + (rise - fall) * chain(s.y, s.slope / prm[2], excess);
  }
  return excess / (tau.v < kMinVal ? Number(kMinVal) : tau);
}

}  // namespace mujacobian

#include "actuation/motor.h"

#include <cmath>

#include "forces/implicit.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// MuJoCo's parameters of a motor, by name.
struct Motor {
  double resistance, constant, coefficient, reference;  // electrical; `reference` is a temperature
  double kp, ki, kd, supply;                            // controller and its voltage limit
  double current_time, current_rate;
  double thermal_resistance, thermal_capacity, ambient;
  double stiffness, damping;  // bristle of the friction
  double slew, windup;
  double cogging, poles, phase;
  double coulomb, stiction, stribeck;
  int inputs;
};

Motor load_motor(const ModelView& m, int actuator) {
  const double *g = m.actuator_gainprm + kNGain * actuator,
               *b = m.actuator_biasprm + kNBias * actuator,
               *p = m.actuator_dynprm + kNDyn * actuator;
  return {g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7],
          p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7],
          p[8], b[0], b[1], b[2], b[3], b[4], b[5], m.actuator_ctrlspec[actuator]};
}

constexpr int kController = input::kPosition | input::kVelocity | input::kFeedforward;

// Returns the voltage of the controller before its limit.                                 (MOT-2)
template <class T>
T controller(const Motor& s, const MotorSlots& slot, const Variables<T>& x) {
  const T* next = x.ctrl;
  auto take = [&](int kind) { return s.inputs & kind ? *next++ : T{}; };
  T position = take(input::kPosition), velocity = take(input::kVelocity);
  T torque = s.kp * (position - x.length) + s.kd * (velocity - x.rate);
  torque = torque + take(input::kFeedforward);
  if (slot.integral >= 0) torque = torque + s.ki * x.act[slot.integral];
  return (s.resistance / s.constant) * torque + s.constant * x.rate;
}

// Returns whether the implicit integrators omit the slopes of a voltage or current rate at its
// limit. They do so since 4.0. The step is discontinuous at the limit itself, and the derivative
// there is that of the outside.                                                         (ACT-12)
bool knows_limits() { return engine().version >= kMuJoCo400; }

// Returns x clamped to [-limit, limit], if the limit is positive. If `closed`, the derivative at
// the limit is that of the outside.
template <class T>
T saturate(const T& x, double limit, bool closed) {
  // tie: limits of a motor, implicit
  if (closed && limit > 0 && std::abs(x.v) >= limit) return T(std::copysign(limit, x.v));
  return clamp(x, limit);
}

template <class T>
struct Voltage {
  T total;
  bool controlled, limited;
};

template <class T>
Voltage<T> motor_voltage(const ModelView& m, int actuator, const Motor& s, const MotorSlots& slot,
                         const Variables<T>& x) {
  Voltage<T> v{{}, (s.inputs & kController) != 0, false};
  if (v.controlled) {
    T wanted = controller(s, slot, x);
    v.total = saturate(wanted, s.supply, knows_limits() && is_implicit(m));
    // tie: supply of a motor
    v.limited = s.supply > 0 && std::abs(wanted.v) >= s.supply;
  }
  // the raw voltage is the last control, and has no limit
  if (s.inputs & input::kVoltage) v.total = v.total + x.ctrl[m.actuator_ctrlnum[actuator] - 1];
  return v;
}

// Returns the resistance at the temperature of the motor.                                 (MOT-3)
template <class T>
T resistance(const Motor& s, const MotorSlots& slot, const Variables<T>& x) {
  if (slot.temperature < 0) return T(s.resistance);
  return s.resistance * (s.coefficient * (x.act[slot.temperature] + (s.ambient - s.reference)) + 1);
}

// Returns the decay rate of the bristle, -stiffness |v| / g(v). The friction g(v) decreases from
// stiction to Coulomb friction.                                                           (MOT-5)
template <class T>
T bristle_decay(const Motor& s, const T& rate) {
  double width = std::fmax(kMinVal, s.stribeck), v = rate.v, ratio = v / width;
  double fade = (s.stiction - s.coulomb) * std::exp(-ratio * ratio);
  T friction = chain(s.coulomb + fade, -2 * ratio / width * fade,
                     (4 * ratio * ratio - 2) / (width * width) * fade, rate);
  if (friction.v < kMinVal) friction = T(kMinVal);
  // tie: bristle at rest
  double sign = (v > 0) - (v < 0);
  return (-s.stiffness) * (chain(std::abs(v), sign, 0, rate) / friction);
}

// Computes phi(x) = (e^x - 1) / x and its first two derivatives without cancellation.
void exponential_mean(double x, double& value, double& slope, double& curvature) {
  if (std::abs(x) > 0.5) {
    value = std::expm1(x) / x;
    slope = (std::exp(x) - value) / x;
    curvature = (std::exp(x) - 2 * slope) / x;
    return;
  }
  value = slope = curvature = 0;
  double term = 1;  // x^n / (n + 1)!
  for (int n = 0; n < 16; n++) {
    value += term;
    slope += term * (n + 1) / (n + 2);
    curvature += term * (n + 1) / (n + 3);
    term *= x / (n + 2);
  }
}

// Returns the resistance times the derivative of the force with respect to the rate in the matrices
// of the implicit integrators. Before 4.0 they ignore the limits of voltage and current rate, and
// they use the current at the end of the step even if the force does not.                (MOT-8)
template <class T>
double motor_damping(const ModelView& m, int actuator, const Motor& s, const Voltage<T>& voltage,
                     const Variables<T>& x) {
  const int current = motor_slots(m, actuator).current;
  double lag = 1;
  if (current >= 0) {
    // tie: rate of a current
    bool limited = s.current_rate > 0 && std::abs(x.act_rate[current].v) >= s.current_rate;
    if (knows_limits() && (limited || !m.actuator_actearly[actuator])) return 0;
    lag = -std::expm1(-m.opt.timestep / s.current_time);
  }
  bool controls = voltage.controlled && !(knows_limits() && voltage.limited);
  double rate_gain = controls ? -s.kd * s.resistance / s.constant + s.constant : 0;
  return s.constant * (rate_gain - s.constant) * lag;
}

}  // namespace

MotorSlots motor_slots(const ModelView& m, int actuator) {
  const double *g = m.actuator_gainprm + kNGain * actuator,
               *p = m.actuator_dynprm + kNDyn * actuator;
  MotorSlots s{-1, -1, -1, -1, -1, 0};
  if (p[7] > 0) s.slew = s.count++;
  if (g[5] > 0) s.integral = s.count++;
  if (p[2] > 0) s.temperature = s.count++;
  if (p[5] > 0) s.bristle = s.count++;
  if (p[0] > 0) s.current = s.count++;
  return s;
}

template <class T>
void slew(Variables<T>& x, int k, double speed, double timestep) {
  const T& last = x.act[k];
  double step = x.ctrl[0].v - last.v, most = speed * timestep;
  // tie: slew rate
  if (step > most) x.ctrl[0] = last + most;
  // tie: slew rate, falling
  if (step < -most) x.ctrl[0] = last - most;
  x.act_rate[k] = (1 / timestep) * (x.ctrl[0] - last);
  x.slewed = k;
}

template <class T>
T anti_windup(const T& rate, double integral, double limit) {
  if (limit <= 0) return rate;
  // tie: windup
  bool stops = integral >= limit ? rate.v > 0 : integral <= -limit && rate.v < 0;
  return stops ? T(0) : rate;
}

template <class T>
void motor_activation_rates(const ModelView& m, int actuator, Variables<T>& x) {
  // controller: slewed setpoint and integral of the error
  const Motor s = load_motor(m, actuator);
  const MotorSlots slot = motor_slots(m, actuator);
  if (slot.slew >= 0) slew(x, slot.slew, s.slew, m.opt.timestep);
  if (slot.integral >= 0) {
    x.act_rate[slot.integral] = anti_windup(x.ctrl[0] - x.length, x.act[slot.integral].v, s.windup);
  }

  // temperature, bristle and current
  const T voltage = motor_voltage(m, actuator, s, slot, x).total;
  const T ohms = resistance(s, slot, x);
  const T settled = (voltage - s.constant * x.rate) / ohms;  // the current without inductance
  if (slot.temperature >= 0) {
    const T& warmth = x.act[slot.temperature];
    T current = slot.current >= 0 ? x.act[slot.current] : settled;
    x.act_rate[slot.temperature] =
        (1 / s.thermal_capacity) *
        (ohms * current * current - (1 / s.thermal_resistance) * warmth);  //              (MOT-4)
  }
  if (slot.bristle >= 0) {
    x.act_rate[slot.bristle] = bristle_decay(s, x.rate) * x.act[slot.bristle] + x.rate;
  }
  if (slot.current >= 0) {
    const bool closed = knows_limits() && is_implicit(m) && m.actuator_actearly[actuator];
    x.act_rate[slot.current] =
        saturate((1 / s.current_time) * (settled - x.act[slot.current]), s.current_rate, closed);
  }
}

template <class T>
T motor_next_bristle(const ModelView& m, int actuator, const Variables<T>& x) {
  // z+ = e^(a h) z + h phi(a h) v, the exact solution at constant speed                   (MOT-6)
  const double h = m.opt.timestep;
  T exponent = h * bristle_decay(load_motor(m, actuator), x.rate);
  double value, slope, curvature, decay = std::exp(exponent.v);
  exponential_mean(exponent.v, value, slope, curvature);
  return chain(decay, decay, decay, exponent) * x.act[motor_slots(m, actuator).bristle] +
         h * (chain(value, slope, curvature, exponent) * x.rate);
}

template <class T>
MotorForce<T> motor_force(const ModelView& m, int actuator, const Variables<T>& x) {
  const Motor s = load_motor(m, actuator);
  const MotorSlots slot = motor_slots(m, actuator);
  const bool dynamic = slot.current >= 0;
  const Voltage<T> voltage = motor_voltage(m, actuator, s, slot, x);
  T ohms = resistance(s, slot, x);
  if (ohms.v < kMinVal) ohms = T(kMinVal);

  // electrical force
  MotorForce<T> f{};
  f.gain = dynamic ? T(s.constant) : s.constant / ohms;
  f.voltage = voltage.total;
  if (!dynamic) f.bias = (-s.constant) * (f.gain * x.rate);
  // cogging and friction
  if (s.cogging != 0) {
    f.mechanical = s.cogging * sin(s.poles * x.length + s.phase);
  }
  if (slot.bristle >= 0) {
    f.mechanical =
        f.mechanical - s.stiffness * x.act[slot.bristle] - s.damping * x.act_rate[slot.bristle];
  }

  // terms of the implicit integrators
  f.damping = motor_damping(m, actuator, s, voltage, x) / ohms;
  f.mechanical_damping = s.damping > 0 ? -s.damping : 0;
  return f;
}

// for Number and CurvedNumber
template void slew(Variables<Number>&, int, double, double);
template Number anti_windup(const Number&, double, double);
template void motor_activation_rates(const ModelView&, int, Variables<Number>&);
template Number motor_next_bristle(const ModelView&, int, const Variables<Number>&);
template MotorForce<Number> motor_force(const ModelView&, int, const Variables<Number>&);
template void slew(Variables<CurvedNumber>&, int, double, double);
template CurvedNumber anti_windup(const CurvedNumber&, double, double);
template void motor_activation_rates(const ModelView&, int, Variables<CurvedNumber>&);
template CurvedNumber motor_next_bristle(const ModelView&, int, const Variables<CurvedNumber>&);
template MotorForce<CurvedNumber> motor_force(const ModelView&, int,
                                              const Variables<CurvedNumber>&);

}  // namespace mujacobian

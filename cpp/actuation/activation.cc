#include "actuation/activation.h"

#include <cmath>
#include <numbers>

#include "actuation/muscle.h"
#include "actuation/pid_plugin.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "spatial/vector.h"

namespace mujacobian {
namespace {

// Sets the rates of the states of a PID controller: slewed setpoint, then integral of the error.
// (ACN-5)
template <class T>
void pid_activation_rates(const ModelView& m, int actuator, Variables<T>& x) {
  const double* prm = m.actuator_dynprm + kNDyn * actuator;
  const double period = wrap_period(m, actuator);
  int k = 0;
  if (prm[1] > 0) {
    if (period > 0) x.ctrl[0] = nearest_setpoint(x.ctrl[0], x.act[0].v, period);
    slew(x, 0, prm[1], m.opt.timestep);
    k = 1;
  }
  if (m.actuator_gainprm[kNGain * actuator] > 0) {
    T error = x.ctrl[0] - x.length;
    if (period > 0) error = nearest_setpoint(error, 0, period);
    x.act_rate[k] = anti_windup(error, x.act[k].v, prm[0]);
  }
}

bool clamps_control(const ModelView& m, int ctrl) {
  return !(m.opt.disableflags & disable::kClampCtrl) && m.actuator_ctrllimited[ctrl];
}

// Returns the smallest control and the largest activation that the ranges of the actuator allow.
MuscleBounds muscle_bounds(const ModelView& m, int actuator) {
  const int ctrl = m.actuator_ctrladr[actuator];
  MuscleBounds b{0, 1};
  if (clamps_control(m, ctrl)) b.least_control = std::fmax(0, m.actuator_ctrlrange[2 * ctrl]);
  if (m.actuator_actlimited[actuator]) {
    b.most_activation = std::fmin(1, m.actuator_actrange[2 * actuator + 1]);
  }
  return b;
}

// Sets the rates of all activations of an actuator, by the type of its dynamics.
template <class T>
void activation_rates(const ModelView& m, int actuator, Variables<T>& x) {
  const double* prm = m.actuator_dynprm + kNDyn * actuator;
  // the activations of a plugin come before those of the dynamics
  const int last = m.actuator_actnum[actuator] - 1, ctrls = m.actuator_ctrlnum[actuator];
  switch (m.actuator_dyntype[actuator]) {
    case dynamics::kIntegrator:
      for (int k = 0; k < ctrls; k++) x.act_rate[last - ctrls + 1 + k] = x.ctrl[k];
      return;
    case dynamics::kFilter:
    case dynamics::kFilterExact:
      x.act_rate[last] = (1 / std::fmax(kMinVal, prm[0])) * (x.ctrl[0] - x.act[last]);
      return;
    case dynamics::kMuscle:
      x.act_rate[0] = muscle_activation_rate(prm, x.ctrl[0], x.act[0], muscle_bounds(m, actuator));
      return;
    case dynamics::kPid:
      return pid_activation_rates(m, actuator, x);
    case dynamics::kMotor:
      return motor_activation_rates(m, actuator, x);
  }
}

// Returns h_tau = tau (1 - e^(-h/tau)), the effective step of a filter that is integrated exactly.
// (ACN-3)
double exact_step(double h, double tau) { return -tau * std::expm1(-h / tau); }

// Replaces a by the rotation vector of the same rotation with norm at most pi:
// a (1 - 2 pi turns / |a|).                                                               (ACN-6)
template <class T>
void anchor(T a[3]) {
  T square = a[0] * a[0] + a[1] * a[1] + a[2] * a[2];
  double angle = std::sqrt(square.v);
  // tie: activation of half a turn
  if (angle <= std::numbers::pi) return;
  double turned = 2 * std::numbers::pi * std::round(angle / (2 * std::numbers::pi));
  T scale = chain(1 - turned / angle, turned / (2 * angle * square.v),
                  -0.75 * turned / (angle * square.v * square.v), square);
  for (int k = 0; k < 3; k++) a[k] = scale * a[k];
}

// Returns the activation clamped to its range.
template <class T>
T limit_activation(const ModelView& m, int actuator, const T& act) {
  if (m.actuator_dyntype[actuator] == dynamics::kMotor) return act;
  if (!m.actuator_actlimited[actuator]) return act;
  return clamp(act, m.actuator_actrange + 2 * actuator);
}

// Returns the number of activations that this type of dynamics has.
int activation_count(const ModelView& m, int actuator) {
  if (m.actuator_plugin[actuator] >= 0) return pid_plugin_activation_count(m, actuator);
  switch (m.actuator_dyntype[actuator]) {
    case dynamics::kNone:
      return 0;
    case dynamics::kIntegrator:
      return m.actuator_ctrlnum[actuator];
    case dynamics::kPid:
      return (m.actuator_dynprm[kNDyn * actuator + 1] > 0) +
             (m.actuator_gainprm[kNGain * actuator] > 0);
    case dynamics::kMotor:
      return motor_slots(m, actuator).count;
    default:
      return 1;
  }
}

// Returns control k of a delayed actuator, from its history.
double delayed_control(const ModelView& m, const DataView& d, int actuator, int k) {
  constexpr int kAsInModel = -1;  // interpolation
  double result[local::kMaxCtrls];
  const double* stored =
      engine().mj_readCtrl(m.address, d.address, actuator, d.time, result, kAsInModel);
  return stored ? stored[k] : result[k];
}

}  // namespace

Control limited_control(const ModelView& m, const DataView& d, int actuator, int k) {
  const int ctrl = m.actuator_ctrladr[actuator] + k;
  const bool delayed = m.actuator_delay[actuator] != 0;
  const double slope = delayed && !m.open_histories ? 0 : 1;
  const double value = delayed ? delayed_control(m, d, actuator, k) : d.ctrl[ctrl];
  if (!clamps_control(m, ctrl)) return {value, slope};
  const double* range = m.actuator_ctrlrange + 2 * ctrl;
  // tie: control range
  return {clamp(value, range), outside(value, range) ? 0.0 : slope};
}

template <class T>
Variables<T> actuator_variables(const ModelView& m, const DataView& d, int actuator) {
  Variables<T> x{};
  int out = m.actuator_outadr[actuator];
  x.length = local_variable<T>(d.actuator_length[out], local::kLength);
  x.rate = local_variable<T>(d.actuator_velocity[out], local::kRate);
  for (int k = 0; k < m.actuator_actnum[actuator]; k++) {
    x.act[k] = local_variable<T>(d.act[m.actuator_actadr[actuator] + k], local::kAct + k);
  }
  for (int k = 0; k < m.actuator_ctrlnum[actuator]; k++) {
    const Control control = limited_control(m, d, actuator, k);
    x.ctrl[k] = control.value;
    x.ctrl[k].d[local::kCtrl + k] = control.slope;
  }
  activation_rates(m, actuator, x);
  if (m.actuator_plugin[actuator] >= 0) pid_plugin_rates(m, d, actuator, x);
  return x;
}

template <class T>
T next_activation(const ModelView& m, int actuator, const Variables<T>& x, int k, const T& rate) {
  const double* prm = m.actuator_dynprm + kNDyn * actuator;
  const double h = m.opt.timestep;
  if (m.actuator_dyntype[actuator] == dynamics::kMotor) {
    const MotorSlots slot = motor_slots(m, actuator);
    if (k == slot.bristle) return motor_next_bristle(m, actuator, x);
    if (k == slot.current) return x.act[k] + exact_step(h, prm[0]) * rate;
    T next = x.act[k] + h * rate;
    // tie: integral of a motor
    return k == slot.integral ? clamp(next, prm[8]) : next;
  }
  bool exact = m.actuator_dyntype[actuator] == dynamics::kFilterExact;
  T next = x.act[k] + (exact ? exact_step(h, std::fmax(kMinVal, prm[0])) : h) * rate;
  return limit_activation(m, actuator, next);
}

template <class T>
void next_activations(const ModelView& m, int actuator, const Variables<T>& x, const T* rates,
                      T next[local::kMaxActs]) {
  const int count = m.actuator_actnum[actuator];
  for (int k = 0; k < count; k++) {
    // a slewed setpoint is act + h (ctrl - act) / h, computed here without its rounding
    next[k] = k == x.slewed ? limit_activation(m, actuator, x.ctrl[0])
                            : next_activation(m, actuator, x, k, rates[k]);
  }
  // setpoints of rotations
  if (m.actuator_dyntype[actuator] != dynamics::kIntegrator) return;
  double period = wrap_period(m, actuator);
  if (period > 0) {
    next[count - 1] = nearest_setpoint(next[count - 1], x.length.v, period);
  } else if (m.actuator_gaintype[actuator] == gain::kSO3) {
    anchor(next);
  }
}

double wrap_period(const ModelView& m, int actuator) {
  // only position servos and PID controllers have a setpoint
  const double* bias_prm = m.actuator_biasprm + kNBias * actuator;
  int gain_type = m.actuator_gaintype[actuator], dyn = m.actuator_dyntype[actuator];
  bool servo = gain_type == gain::kFixed && m.actuator_biastype[actuator] == bias::kAffine &&
               m.actuator_gainprm[kNGain * actuator] == -bias_prm[1] &&
               (dyn == dynamics::kNone || dyn == dynamics::kIntegrator);
  if (!servo && gain_type != gain::kPid) return 0;

  // a rotation relative to a site, or of a ball joint
  const double* gear = m.actuator_gear + 6 * m.actuator_outadr[actuator];
  const int *id = m.actuator_trnid + 2 * actuator, trn = m.actuator_trntype[actuator];
  if (trn == transmission::kSite) {
    bool rotational = id[1] >= 0 && gear[0] == 0 && gear[1] == 0 && gear[2] == 0;
    return rotational ? 2 * std::numbers::pi * norm(load3(gear + 3)) : 0;
  }
  bool on_joint = trn == transmission::kJoint || trn == transmission::kJointInParent;
  bool ball = on_joint && m.jnt_type[id[0]] == joint::kBall;
  return ball ? 2 * std::numbers::pi * norm(load3(gear)) : 0;
}

template <class T>
T nearest_setpoint(const T& setpoint, double length, double period) {
  // tie: setpoint half a turn away
  return setpoint - period * std::round((setpoint.v - length) / period);
}

const char* activation_refusal(const ModelView& m, int a) {
  if (m.actuator_plugin[a] >= 0) {
    if (const char* reason = pid_plugin_refusal(m, a)) return reason;
    if (wrap_period(m, a) > 0) return "the periodic setpoint of its plugin is not supported";
  }
  int dyn = m.actuator_dyntype[a];
  if (dyn < dynamics::kNone || dyn > dynamics::kPid)
    return "its activation dynamics are not supported";
  bool fits = m.actuator_actnum[a] == activation_count(m, a) &&
              m.actuator_actnum[a] <= local::kMaxActs && m.actuator_ctrlnum[a] <= local::kMaxCtrls;
  return fits ? nullptr : "the number of its activations";
}

// for Number and CurvedNumber
template Variables<Number> actuator_variables(const ModelView&, const DataView&, int);
template Number next_activation(const ModelView&, int, const Variables<Number>&, int,
                                const Number&);
template void next_activations(const ModelView&, int, const Variables<Number>&, const Number*,
                               Number*);
template Number nearest_setpoint(const Number&, double, double);
template Variables<CurvedNumber> actuator_variables(const ModelView&, const DataView&, int);
template CurvedNumber next_activation(const ModelView&, int, const Variables<CurvedNumber>&, int,
                                      const CurvedNumber&);
template void next_activations(const ModelView&, int, const Variables<CurvedNumber>&,
                               const CurvedNumber*, CurvedNumber*);
template CurvedNumber nearest_setpoint(const CurvedNumber&, double, double);

}  // namespace mujacobian

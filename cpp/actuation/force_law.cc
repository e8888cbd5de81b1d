#include "actuation/force_law.h"

#include "actuation/muscle.h"
#include "actuation/pid_plugin.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// Returns the last activation, or its value after the step if the actuator has the flag actearly.
template <class T>
T last_activation(const ModelView& m, int actuator, const Variables<T>& x) {
  int k = m.actuator_actnum[actuator] - 1;
  if (!m.actuator_actearly[actuator]) return x.act[k];
  return next_activation(m, actuator, x, k, x.act_rate[k]);
}

// Returns kp (setpoint) + kv (velocity setpoint) + feedforward + ki (integral). The terms with the
// length and rate are in the bias.
template <class T>
T pid_input(const ModelView& m, int actuator, const Variables<T>& x) {
  const double* prm = m.actuator_biasprm + kNBias * actuator;
  const int inputs = m.actuator_ctrlspec[actuator];
  const T* next = x.ctrl;
  T force{};
  if (inputs & input::kPosition) {
    T setpoint = *next++;
    double period = wrap_period(m, actuator);
    if (period > 0) setpoint = nearest_setpoint(setpoint, x.length.v, period);
    force = (-prm[1]) * setpoint;
  }
  if (inputs & input::kVelocity) force = force - prm[2] * *next++;
  if (inputs & input::kFeedforward) force = force + *next++;
  double ki = m.actuator_gainprm[kNGain * actuator];
  if (m.actuator_actnum[actuator] && ki > 0) force = force + ki * last_activation(m, actuator, x);
  return force;
}

// Returns prm[0] + prm[1] length + prm[2] rate.
template <class T>
T affine(const double* prm, const Variables<T>& x) {
  return prm[0] + prm[1] * x.length + prm[2] * x.rate;
}

// Computes the force law of the plugin mujoco.pid. The integrators use the bias, which does not
// act.
template <class T>
void plugin_force_law(const ModelView& m, const DataView& d, int actuator, ForceLaw<T>& law) {
  const Variables<T> x = actuator_variables<T>(m, d, actuator);
  const bool dynamic = m.actuator_dyntype[actuator] != dynamics::kNone;
  law.force = pid_plugin_force(m, d, actuator, x, dynamic ? last_activation(m, actuator, x) : T(0));
  if (m.actuator_biastype[actuator] != bias::kAffine) return;
  const double* bias = m.actuator_biasprm + kNBias * actuator;
  law.stiffness.v = bias[1];
  law.damping.v = bias[2];
}

}  // namespace

bool force_law_is_linear(const ModelView& m, int actuator) {
  if (m.actuator_plugin[actuator] >= 0) return false;
  int bias_type = m.actuator_biastype[actuator];
  return m.actuator_gaintype[actuator] == gain::kFixed && m.actuator_actnum[actuator] == 0 &&
         (bias_type == bias::kNone || bias_type == bias::kAffine) && wrap_period(m, actuator) == 0;
}

template <class T>
ForceLaw<T> linear_force_law(const ModelView& m, const DataView& d, int actuator) {
  ForceLaw<T> law{};
  const int out = m.actuator_outadr[actuator];
  const double gain = m.actuator_gainprm[kNGain * actuator];
  const Control control = limited_control(m, d, actuator, 0);
  law.force.v = gain * control.value;
  law.force.d[local::kCtrl] = gain * control.slope;
  if (m.actuator_biastype[actuator] == bias::kNone) return law;
  const double* bias = m.actuator_biasprm + kNBias * actuator;
  law.force.v += bias[0] + bias[1] * d.actuator_length[out] + bias[2] * d.actuator_velocity[out];
  law.force.d[local::kLength] = law.stiffness.v = bias[1];
  law.force.d[local::kRate] = law.damping.v = bias[2];
  return law;
}

template <class T>
ForceLaw<T> actuator_force_law(const ModelView& m, const DataView& d, int actuator) {
  if (force_law_is_linear(m, actuator)) return linear_force_law<T>(m, d, actuator);
  ForceLaw<T> law{};
  if (m.actuator_plugin[actuator] >= 0) {
    plugin_force_law(m, d, actuator, law);
    return law;
  }
  const Variables<T> x = actuator_variables<T>(m, d, actuator);
  const int gain_type = m.actuator_gaintype[actuator], bias_type = m.actuator_biastype[actuator];
  const double* gain_prm = m.actuator_gainprm + kNGain * actuator;
  const double* bias_prm = m.actuator_biasprm + kNBias * actuator;

  // gain times input
  if (gain_type == gain::kPid) {
    law.force = pid_input(m, actuator, x);
  } else if (gain_type == gain::kMotor) {
    MotorForce<T> motor = motor_force(m, actuator, x);
    bool dynamic = motor_slots(m, actuator).current >= 0;
    law.force = motor.gain * (dynamic ? last_activation(m, actuator, x) : motor.voltage);
    law.force = law.force + motor.bias;
    law.mechanical = motor.mechanical;
    law.damping = motor.damping;
    law.mechanical_damping = motor.mechanical_damping;
  } else {
    const T input = gain_input(m, actuator, x);
    if (gain_type == gain::kFixed) {
      law.force = gain_prm[0] * input;
    } else if (gain_type == gain::kAffine) {
      law.force = affine(gain_prm, x) * input;
      law.damping = gain_prm[2] * input;
      law.stiffness = gain_prm[1] * input;
    } else {
      MuscleGain<T> muscle = muscle_gain(m, actuator, x.length, x.rate);
      law.force = muscle.gain * input;
      law.damping = muscle.rate_slope * input;
      law.stiffness = muscle.length_slope * input;
    }
  }

  // bias
  if (bias_type == bias::kAffine) {
    law.force = law.force + affine(bias_prm, x);
    law.damping = law.damping + bias_prm[2];
    law.stiffness = law.stiffness + bias_prm[1];
  } else if (bias_type == bias::kMuscle) {
    MuscleBias<T> muscle = muscle_bias(m, actuator, x.length);
    law.force = law.force + muscle.force;
    law.stiffness = law.stiffness + muscle.length_slope;
  }
  return law;
}

template <class T>
T gain_input(const ModelView& m, int actuator, const Variables<T>& x) {
  T input = m.actuator_actnum[actuator] ? last_activation(m, actuator, x) : x.ctrl[0];
  double period = wrap_period(m, actuator);
  return period > 0 ? nearest_setpoint(input, x.length.v, period) : input;
}

const char* force_law_refusal(const ModelView& m, int actuator) {
  int gain_type = m.actuator_gaintype[actuator], bias_type = m.actuator_biastype[actuator];
  int dyn = m.actuator_dyntype[actuator];
  if (gain_type < gain::kFixed || gain_type > gain::kPid) return "its gain type is not supported";
  if (bias_type < bias::kNone || bias_type > bias::kSO3) return "its bias type is not supported";
  // the gain and the bias of motors and orientation servos belong together
  bool motor = gain_type == gain::kMotor, so3 = gain_type == gain::kSO3;
  if ((bias_type == bias::kMotor) != motor || (bias_type == bias::kSO3) != so3) {
    return "its combination of gain and bias is not supported";
  }
  if ((dyn == dynamics::kMotor && !motor) || (dyn == dynamics::kPid && gain_type != gain::kPid) ||
      (motor && motor_slots(m, actuator).count && dyn != dynamics::kMotor)) {
    return "its combination of gain and activation dynamics is not supported";
  }
  return nullptr;
}

// for Number and CurvedNumber
template Number gain_input(const ModelView&, int, const Variables<Number>&);
template CurvedNumber gain_input(const ModelView&, int, const Variables<CurvedNumber>&);
template ForceLaw<LinearNumber> linear_force_law(const ModelView&, const DataView&, int);
template ForceLaw<Number> actuator_force_law(const ModelView&, const DataView&, int);
template ForceLaw<CurvedNumber> actuator_force_law(const ModelView&, const DataView&, int);

}  // namespace mujacobian

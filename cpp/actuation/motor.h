// DC motors: up to five states (slewed setpoint, integral of the error, temperature, bristle of the
// friction, current), an on-board controller, back-EMF, cogging and friction.
// docs/derivations/activation.md.
#pragma once

#include "actuation/number.h"
#include "layout/views.h"

namespace mujacobian {

// Places of the states among the activations of the motor, -1 if it lacks one.
struct MotorSlots {
  int slew, integral, temperature, bristle, current, count;
};
MotorSlots motor_slots(const ModelView& m, int actuator);

// The variables of one actuator: what its law and the dynamics of its activations depend on.
struct Variables {
  Number length, rate;
  Number act[local::kMaxActs];
  Number act_rate[local::kMaxActs];  // d(act)/dt
  Number ctrl[local::kMaxCtrls];     // within their ranges
  int slewed = -1;  // the activation that becomes the first control, whose change is limited
};

// Set the rates of the motor's activations; a slew limit also changes the first control.
void motor_activation_rates(const ModelView& m, int actuator, Variables& x);

// The bristle after one step.
Number motor_next_bristle(const ModelView& m, int actuator, const Variables& x);

struct MotorForce {
  Number gain;     // force per unit of input: of current, or of voltage where there is no current
  Number voltage;  // the input of a motor without current
  Number bias;     // back-EMF, which a motor with current has in its dynamics
  Number mechanical;  // cogging and friction, beyond the reach of force limits

  // what the implicit integrators know of their derivatives with respect to the rate
  Number damping;
  double mechanical_damping;
};
MotorForce motor_force(const ModelView& m, int actuator, const Variables& x);

// Limit the change of the first control from its last value, activation k, to `speed`.
void slew(Variables& x, int k, double speed, double timestep);

// The rate of an integral that stops growing beyond `limit` (if positive).
Number anti_windup(const Number& rate, double integral, double limit);

}  // namespace mujacobian

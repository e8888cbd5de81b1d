// DC motors: up to five states (slewed setpoint, integral of the error, temperature, bristle of the
// friction, current), an on-board controller, back-EMF, cogging and friction.
// docs/derivations/activation.md.
#pragma once

#include "actuation/number.h"
#include "layout/views.h"

namespace mujacobian {

// Indices of the states within the activations of the motor, -1 for a state that it does not have.
struct MotorSlots {
  int slew, integral, temperature, bristle, current, count;
};
MotorSlots motor_slots(const ModelView& m, int actuator);

// The variables of one actuator, on which its force law and the dynamics of its activations depend.
template <class T>
struct Variables {
  T length, rate;
  T act[local::kMaxActs];
  T act_rate[local::kMaxActs];  // d(act)/dt
  T ctrl[local::kMaxCtrls];     // clamped to their ranges
  int slewed = -1;  // the activation that follows the first control at a limited rate, or -1
};

// Sets the rates of the activations of the motor. A slew limit also changes the first control.
template <class T>
void motor_activation_rates(const ModelView& m, int actuator, Variables<T>& x);

// Returns the deflection of the bristle after one step.
template <class T>
T motor_next_bristle(const ModelView& m, int actuator, const Variables<T>& x);

template <class T>
struct MotorForce {
  T gain;        // force per unit of current, or of voltage if the current is not a state
  T voltage;     // input of a motor whose current is not a state
  T bias;        // back-EMF; if the current is a state, its dynamics contain it
  T mechanical;  // cogging and friction, not subject to force limits

  // derivatives with respect to the rate in the matrices of the implicit integrators
  T damping;
  double mechanical_damping;
};
template <class T>
MotorForce<T> motor_force(const ModelView& m, int actuator, const Variables<T>& x);

// Limits the rate at which the first control moves away from its last value, activation k, to
// `speed`.
template <class T>
void slew(Variables<T>& x, int k, double speed, double timestep);

// Returns the rate of an integral, or zero if the integral is beyond `limit` (if positive) and
// would grow.
template <class T>
T anti_windup(const T& rate, double integral, double limit);

}  // namespace mujacobian

// Activations: their dynamics, and their values after one step. docs/derivations/activation.md.
#pragma once

#include "actuation/motor.h"

namespace mujacobian {

// Control k of an actuator, clamped to its range, and its derivative: 1 inside the range, 0
// outside. A delayed control is read from its history, which is constant
// unless the histories of the model are open. (ACT-13)
struct Control {
  double value, slope;
};
Control limited_control(const ModelView& m, const DataView& d, int actuator, int k);

// Returns the variables of an actuator at the current state, with the rates of its activations.
template <class T>
Variables<T> actuator_variables(const ModelView& m, const DataView& d, int actuator);

// Returns activation k of the actuator after one step with d(act)/dt = rate. Forces use this value
// if the actuator has the flag actearly.
template <class T>
T next_activation(const ModelView& m, int actuator, const Variables<T>& x, int k, const T& rate);

// Computes all activations of the actuator after one step with d(act)/dt = rates. A setpoint that
// is a rotation is replaced by its equivalent nearest to the current rotation.
template <class T>
void next_activations(const ModelView& m, int actuator, const Variables<T>& x, const T* rates,
                      T next[local::kMaxActs]);

// Return the period of the setpoint of a servo on a rotational transmission, or 0 if it has none,
// and the setpoint, modulo this period, that is nearest to `length`.                     (ACT-7)
double wrap_period(const ModelView& m, int actuator);
template <class T>
T nearest_setpoint(const T& setpoint, double length, double period);

// Returns the reason why the activation dynamics are not supported, or null.
const char* activation_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

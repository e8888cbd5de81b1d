// The actuator plugin mujoco.pid: a servo with proportional, integral and derivative gains, whose
// integral and last setpoint are activations. docs/derivations/activation.md.
#pragma once

#include "actuation/motor.h"

namespace mujacobian {

// The following functions are for actuators of this plugin.

// Returns the number of its activations, with the one of its activation dynamics.
int pid_plugin_activation_count(const ModelView& m, int actuator);

// Sets the rates of the activations that belong to the plugin.
template <class T>
void pid_plugin_rates(const ModelView& m, const DataView& d, int actuator, Variables<T>& x);

// Returns the force before any limits. `last` is the activation that the force uses if the actuator
// has activation dynamics.
template <class T>
T pid_plugin_force(const ModelView& m, const DataView& d, int actuator, const Variables<T>& x,
                   const T& last);

// Returns the reason why this use of the plugin is not supported, or null.
const char* pid_plugin_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

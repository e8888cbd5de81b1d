// Activations: their dynamics and their value after one step. docs/derivations/activation.md.
#pragma once

#include "actuation/motor.h"

namespace mujacobian {

// A control within its range, and its derivative with respect to the control: 1, or 0 beyond it.
struct Control {
  double value, slope;
};
Control limited_control(const ModelView& m, const DataView& d, int ctrl);

// The variables of an actuator at the current state, with the rates of its activations.
Variables actuator_variables(const ModelView& m, const DataView& d, int actuator);

// Activation k of the actuator after one step with d(act)/dt = rate, as forces see it with
// actearly.
Number next_activation(const ModelView& m, int actuator, const Variables& x, int k,
                       const Number& rate);

// All activations of the actuator after one step with d(act)/dt = rates, where setpoints of
// rotations are brought back to their principal representative.
void next_activations(const ModelView& m, int actuator, const Variables& x, const Number* rates,
                      Number next[local::kMaxActs]);

// Period of the setpoint of a servo on a rotational transmission, else 0, and the representative of
// a setpoint nearest to `length`.                                                         (ACT-7)
double wrap_period(const ModelView& m, int actuator);
Number nearest_setpoint(const Number& setpoint, double length, double period);

// Why the activation dynamics are not covered, null if they are.
const char* activation_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

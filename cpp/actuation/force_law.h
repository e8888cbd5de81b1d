// The force law of an actuator with one output, gain times input plus bias, before any limits.
// docs/derivations/actuation.md.
#pragma once

#include "actuation/activation.h"

namespace mujacobian {

template <class T>
struct ForceLaw {
  T force;       // subject to force limits
  T mechanical;  // cogging and friction of motors, not subject to force limits

  // the derivative with respect to the rate in the matrices of MuJoCo's implicit integrators, and
  // the derivative with respect to the length in the metric of the discrete integrator
  T damping, stiffness;
  double mechanical_damping = 0;
};

template <class T>
ForceLaw<T> actuator_force_law(const ModelView& m, const DataView& d, int actuator);

// Returns whether the actuator has a constant gain times one control, as most actuators of robots
// have. The second derivatives of its force law are zero.
bool force_law_is_linear(const ModelView& m, int actuator);

// Returns the force law of such an actuator. Its derivatives are its parameters.
template <class T>
ForceLaw<T> linear_force_law(const ModelView& m, const DataView& d, int actuator);

// Returns the input that a constant or affine gain multiplies: the control, or the last activation.
template <class T>
T gain_input(const ModelView& m, int actuator, const Variables<T>& x);

// Returns the reason why the gain or bias is not supported, or null.
const char* force_law_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

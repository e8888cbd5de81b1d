// The force of an actuator with one output: gain, input and bias. docs/derivations/actuation.md.
#pragma once

#include "actuation/activation.h"

namespace mujacobian {

struct ForceLaw {
  Number force;       // subject to force limits
  Number mechanical;  // cogging and friction of motors, which are not

  // derivatives with respect to the rate as MuJoCo's implicit integrators know them, and with
  // respect to the length as the discrete one does
  Number damping, stiffness;
  double mechanical_damping = 0;
};

ForceLaw actuator_force_law(const ModelView& m, const DataView& d, int actuator);

// What a constant or affine gain multiplies: the control, or the last activation.
double gain_input(const ModelView& m, const DataView& d, int actuator);

// Why the gain or bias is not covered, null if they are.
const char* force_law_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

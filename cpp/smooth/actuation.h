// Actuator forces: clamped controls, gains and biases, saturation. docs/derivations/actuation.md.
#pragma once

#include "smooth/path.h"

namespace mujacobian {

struct Actuation {
  PathForce* forces;
  int count;
  const unsigned char* frozen;  // per dof: its total actuator force is constant; null: none
};

// The forces of all enabled actuators at the current state.
Actuation actuation(const ModelView& m, const DataView& d, Arena& arena);

// No actuator acts; gravity compensation that passes through actuators does not either.
Actuation no_actuation(const ModelView& m, Arena& arena);

// Its group is switched off by opt.disableactuator.
bool actuator_disabled(const ModelView& m, int actuator);

// Why the actuator is not covered, null if it is.
const char* actuator_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

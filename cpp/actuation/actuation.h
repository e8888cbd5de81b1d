// Actuator forces and activations: clamped controls, laws, saturation.
// docs/derivations/actuation.md.
#pragma once

#include "actuation/number.h"
#include "tree/path.h"

namespace mujacobian {

// One activation: its rate and its value after a step, as functions of its actuator's variables.
struct NextActivation {
  int act, actuator;
  Number rate, value;
  Path path;    // of the actuator, empty where neither depends on it
  double gear;  // length and rate of the actuator per length and rate of the path
};

struct Actuation {
  PathForce* forces;
  int count;
  const unsigned char* frozen;  // per dof: its total actuator force is constant; null: none
  const Coupling* dofs;         // per actuator: those it moves or depends on; null: none does
  NextActivation* next;         // of every activation; null: all are held
};

// The forces of all enabled actuators at the current state, and all activations.
Actuation actuation(const ModelView& m, const DataView& d, Arena& arena);

// No actuator acts; gravity compensation that passes through actuators does not either.
Actuation no_actuation(const ModelView& m, Arena& arena);

// The force of one enabled actuator, as MuJoCo's actuator_force. The law is its force before any
// limit. With limits, the force changes by                                              (SEN-14)
//   slope (d law - share sum_j d law_j) + d mechanical, summed over the actuators of its tendon.
struct ActuatorForce {
  int actuator;
  PathForce unlimited;   // along the tendon's path, gear included, where there is one
  PathForce mechanical;  // cogging and friction of motors
  double slope;  // zero at the force range, the scale on a tendon beyond its range, else one
  double share;  // of the law in the tendon's total where that is beyond its range, else zero
  double implicit_share;  // 1, or 0 where the implicit integrators leave its damping out
};
struct ActuatorForces {
  ActuatorForce* force;
  int count;
};
ActuatorForces actuator_forces(const ModelView& m, const DataView& d, Arena& arena);

// Length of the actuator per length of its path: the gear on a tendon, else 1.
double path_gear(const ModelView& m, int actuator);

// The actuator pulls on the tendon.
bool pulls_tendon(const ModelView& m, int actuator, int tendon);

// Its group is switched off by opt.disableactuator.
bool actuator_disabled(const ModelView& m, int actuator);

// Why the actuator is not covered, null if it is.
const char* actuator_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

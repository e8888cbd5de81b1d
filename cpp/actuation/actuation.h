// Actuator forces and activations: clamped controls, force laws and saturation.
// docs/derivations/actuation.md.
#pragma once

#include "actuation/number.h"
#include "tree/path.h"

namespace mujacobian {

// One activation: its rate, and its value after a step, as functions of the variables of its
// actuator.
struct NextActivation {
  int act, actuator;
  Number rate, value;
  Path path;    // path of the actuator, empty if neither depends on it
  double gear;  // length of the actuator per length of the path
};

// The weights of the parts of a force law in the force along the path of an actuator.
struct ForceWeights {
  int actuator;
  double force = 0, mechanical = 0;
  double damping = 0;   // of the damping and stiffness of the implicit integrators
  double friction = 0;  // of the friction of a motor, in the damping of the implicit integrators
  bool jumps = false;   // the step is discontinuous where the force reaches its range   (ACT-12)
  bool scaled = false;  // its tendon is beyond its range, so other actuators change the force
};

struct Actuation {
  PathForce* forces;
  int count;
  const ForceWeights* weights;  // of the first forces, which belong to actuators with one output
  int weight_count;
  const unsigned char* frozen;  // per dof: its total actuator force is saturated; null: none
  const Coupling* dofs;         // per actuator: the dofs it moves or depends on; null: no dofs
  NextActivation* next;         // per activation; null: all activations are constant
};

// Returns the forces of all enabled actuators at the current state, and all activations.
Actuation actuation(const ModelView& m, const DataView& d, Arena& arena);

// Returns an actuation without forces. Gravity compensation that is part of the actuator force does
// not act either.
Actuation no_actuation(const ModelView& m, Arena& arena);

// The force of one enabled actuator, as in MuJoCo's actuator_force. Its derivative is
//   slope (d unlimited - share sum_j d unlimited_j) + d mechanical,                     (SEN-14)
// where the sum runs over the actuators of its tendon.
struct ActuatorForce {
  int actuator;
  PathForce unlimited;   // force before any limit; on a tendon along its path, with the gear
  PathForce mechanical;  // cogging and friction of motors
  double slope;  // 0 at the force range, the scale on a tendon beyond its range, otherwise 1
  double share;  // share of `unlimited` in the total of a tendon beyond its range, otherwise 0
  double implicit_share;  // 1, or 0 if the implicit integrators omit its damping
};
struct ActuatorForces {
  ActuatorForce* force;
  int count;
};
ActuatorForces actuator_forces(const ModelView& m, const DataView& d, Arena& arena);

// Returns the length of the actuator per length of its path: the gear on a tendon, otherwise 1.
double path_gear(const ModelView& m, int actuator);

// Returns whether the actuator acts on the tendon.
bool pulls_tendon(const ModelView& m, int actuator, int tendon);

// Returns whether opt.disableactuator disables the group of the actuator.
bool actuator_disabled(const ModelView& m, int actuator);

// Returns the reason why the actuator is not supported, or null.
const char* actuator_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian

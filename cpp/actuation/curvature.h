// Second derivatives of actuator forces and activations. docs/derivations/second_order.md.
#pragma once

#include "actuation/actuation.h"

namespace mujacobian {

// Writes the second derivatives of the forces of actuators with one output to `out` (room for
// weight_count + ntendon), except for those that are zero, and returns their number. A tendon that
// scales the forces of its actuators adds one more, of a force that is zero.
int actuator_curvatures(const ModelView& m, const DataView& d, const Actuation& actuation,
                        PathCurvature* out, Arena& arena);

// Returns whether the force of an actuator with one output may have second derivatives.
bool is_curved_actuator(const ModelView& m, int actuator);

// Return the second derivatives of the parts of the force of an actuator, before any limit.
PathCurvature unlimited_curvature(const ModelView& m, const DataView& d, const ActuatorForce& f,
                                  Arena& arena);
PathCurvature mechanical_curvature(const ModelView& m, const DataView& d, const ActuatorForce& f,
                                   Arena& arena);

// Returns what the scaling of a tendon adds to the second derivatives of a sum of the forces of its
// actuators, as that of a force that is zero. `weights` (weight_count) are the first derivatives of
// the sum by the forces before scaling.                                                  (HES-59)
PathCurvature scaling_curvature(const ModelView& m, const DataView& d, const Actuation& actuation,
                                int tendon, const double* weights, Arena& arena);

// Returns the second derivatives of the stiffness of a force in the metric of the discrete
// integrator, for the variables of its curvature; null: zero.
const double* stiffness_curvature(const ModelView& m, const DataView& d, const Actuation& actuation,
                                  const PathCurvature& c, Arena& arena);

// Returns the element that the path of an actuator with one output belongs to.
PathSource actuator_source(const ModelView& m, int actuator);

// Returns the second derivative of the length of an actuator, as that of a force that is equal to
// it.
PathCurvature length_curvature(const ModelView& m, const DataView& d, int actuator, Arena& arena);

// The second derivative of one activation after the step, or of its rate, with respect to the
// variables of its actuator: the length, the rate, its activations and its controls.
struct ActivationCurvature {
  int act, actuator;
  CurvedNumber value;
  Path path;      // path of the actuator; empty if the value does not depend on it
  double gear;    // length of the actuator per length of the path
  PathBend bend;  // second derivatives of the length and the rate of the path
};

// Writes those of the activations after the step, or of their rates, that are not linear to `out`
// (room for na), and returns their number.
enum class ActivationValue { kNext, kRate };
int activation_curvatures(const ModelView& m, const DataView& d, const Actuation& actuation,
                          ActivationValue of, ActivationCurvature* out, Arena& arena);

}  // namespace mujacobian

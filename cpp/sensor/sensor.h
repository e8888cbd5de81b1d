// Derivatives of the sensors: C, D and Df. docs/derivations/sensors.md.
#pragma once

#include "sensor/sensing.h"

namespace mujacobian {

// Row-major outputs, null where not asked for.
struct SensorOutputs {
  double *C, *D, *Df;
  const unsigned char* wanted = nullptr;  // (nsensor) whose rows are written; null: of all
  DirectForces forces{0, nullptr};
  double* direct = nullptr;  // (ns, forces.count)
};

// Value r of the sensor is constant: its cutoff holds it, or sensors are disabled. (SEN-2)
bool is_cut_off(const ModelView& m, const DataView& d, int sensor, int r);

// Some sensor that is wanted depends on the acceleration.
bool senses_acceleration(const ModelView& m, const unsigned char* wanted = nullptr);

// A wanted sensor reads what MuJoCo's constraint solver found: accelerations or constraint forces.
bool senses_solution(const ModelView& m, const unsigned char* wanted = nullptr);

// Some sensor reads the force of a limit or contact, and so d(acc) of constrained components.
bool senses_force(const ModelView& m);

// Why the sensor is not covered, null if it is.
const char* sensor_refusal(const ModelView& m, int sensor);

// Write the rows of the sensors that are wanted, none of which is refused. `f.residual` holds da if
// senses_acceleration(m, wanted), and in constrained components if senses_force(m). Throws
// Unsupported where something about this state is not covered.
void sense(const ModelView& m, const DataView& d, const ForwardDynamics& f,
           const SensorOutputs& out, Arena& arena);

// By family; `rows` is zero on entry.
void sense_joint(Sensing& s, int sensor, SensorRows& rows);
void sense_path(Sensing& s, int sensor, SensorRows& rows);
void sense_limit(Sensing& s, int sensor, SensorRows& rows);
void sense_frame(Sensing& s, int sensor, SensorRows& rows);
void sense_inertial(Sensing& s, int sensor, SensorRows& rows);
void sense_subtree(Sensing& s, int sensor, SensorRows& rows);
void sense_projection(Sensing& s, int sensor, SensorRows& rows);
void sense_energy(Sensing& s, int sensor, SensorRows& rows);
void sense_wrench(Sensing& s, int sensor, SensorRows& rows);
void sense_touch(Sensing& s, int sensor, SensorRows& rows);
void sense_contact(Sensing& s, int sensor, SensorRows& rows);
void sense_distance(Sensing& s, int sensor, SensorRows& rows);
void sense_ray(Sensing& s, int sensor, SensorRows& rows);

// The force along a spatial tendon; adds its derivative to row 0.                        (SEN-20)
double sense_tension(Sensing& s, int tendon, SensorRows& rows);

}  // namespace mujacobian

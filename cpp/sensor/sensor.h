// The derivatives of sensors: C, D and Df. docs/derivations/sensors.md.
#pragma once

#include "sensor/sensing.h"

namespace mujacobian {

// Row-major outputs. Null: not computed.
struct SensorOutputs {
  double *C, *D, *Df;
  const unsigned char* wanted = nullptr;  // (nsensor), zero: no rows are written; null: all are
  DirectForces forces{0, nullptr};
  double* direct = nullptr;  // (ns, forces.count)
};

// Returns whether value r of the sensor is constant, because its cutoff clamps it or because
// sensors are disabled. (SEN-2)
bool is_cut_off(const ModelView& m, const DataView& d, int sensor, int r);

// Returns whether a wanted sensor needs the derivatives of all accelerations.
bool senses_acceleration(const ModelView& m, const unsigned char* wanted = nullptr);

// Returns whether a wanted sensor reads a result of MuJoCo's constraint solver: accelerations or
// constraint forces.
bool senses_solution(const ModelView& m, const unsigned char* wanted = nullptr);

// Returns whether a wanted sensor reads the force of a limit or contact, and therefore d(acc) of
// constrained components.
bool senses_force(const ModelView& m, const unsigned char* wanted = nullptr);

// Returns whether the derivative of a wanted sensor needs a call of MuJoCo with the data: rays and
// distances.
bool calls_engine(const ModelView& m, const unsigned char* wanted = nullptr);

// Returns whether the sensor keeps its old value in this state: it is disabled, asleep, or reads
// its history buffer.
bool is_held(const ModelView& m, const DataView& d, int sensor);

// Returns whether values of the sensor may come from its history buffer, which is not open.
bool has_history(const ModelView& m, int sensor);

// Returns why the sensor is not supported, null if it is.
const char* sensor_refusal(const ModelView& m, int sensor);

// Writes the rows of the wanted sensors, all of which are supported. `f.residual` contains da if
// senses_acceleration(m, wanted), and in constrained components if senses_force(m). Throws
// Unsupported if the state of a sensor has no exact derivative.
void sense(const ModelView& m, const DataView& d, const ForwardDynamics& f,
           const SensorOutputs& out, Arena& arena);

}  // namespace mujacobian

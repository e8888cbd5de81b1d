// The sensor types and their table. A row contains all properties of a type, except for the
// arithmetic in its function. docs/derivations/sensors.md.
#pragma once

#include "layout/enums.h"
#include "layout/table.h"
#include "sensor/sensing.h"

namespace mujacobian {

// MuJoCo's sensor types, in the form of MUJACOBIAN_ENUMERATORS in layout/enums.h
#define MUJACOBIAN_SENSORS(X)                                      \
  X(sensor, kTouch, mjtSensor, mjSENS_TOUCH, 0)                    \
  X(sensor, kAccelerometer, mjtSensor, mjSENS_ACCELEROMETER, 1)    \
  X(sensor, kVelocimeter, mjtSensor, mjSENS_VELOCIMETER, 2)        \
  X(sensor, kGyro, mjtSensor, mjSENS_GYRO, 3)                      \
  X(sensor, kForce, mjtSensor, mjSENS_FORCE, 4)                    \
  X(sensor, kTorque, mjtSensor, mjSENS_TORQUE, 5)                  \
  X(sensor, kMagnetometer, mjtSensor, mjSENS_MAGNETOMETER, 6)      \
  X(sensor, kRangefinder, mjtSensor, mjSENS_RANGEFINDER, 7)        \
  X(sensor, kCamProjection, mjtSensor, mjSENS_CAMPROJECTION, 8)    \
  X(sensor, kJointPos, mjtSensor, mjSENS_JOINTPOS, 9)              \
  X(sensor, kJointVel, mjtSensor, mjSENS_JOINTVEL, 10)             \
  X(sensor, kTendonPos, mjtSensor, mjSENS_TENDONPOS, 11)           \
  X(sensor, kTendonVel, mjtSensor, mjSENS_TENDONVEL, 12)           \
  X(sensor, kActuatorPos, mjtSensor, mjSENS_ACTUATORPOS, 13)       \
  X(sensor, kActuatorVel, mjtSensor, mjSENS_ACTUATORVEL, 14)       \
  X(sensor, kActuatorFrc, mjtSensor, mjSENS_ACTUATORFRC, 15)       \
  X(sensor, kJointActFrc, mjtSensor, mjSENS_JOINTACTFRC, 16)       \
  X(sensor, kTendonActFrc, mjtSensor, mjSENS_TENDONACTFRC, 17)     \
  X(sensor, kBallQuat, mjtSensor, mjSENS_BALLQUAT, 18)             \
  X(sensor, kBallAngVel, mjtSensor, mjSENS_BALLANGVEL, 19)         \
  X(sensor, kJointLimitPos, mjtSensor, mjSENS_JOINTLIMITPOS, 20)   \
  X(sensor, kJointLimitVel, mjtSensor, mjSENS_JOINTLIMITVEL, 21)   \
  X(sensor, kJointLimitFrc, mjtSensor, mjSENS_JOINTLIMITFRC, 22)   \
  X(sensor, kTendonLimitPos, mjtSensor, mjSENS_TENDONLIMITPOS, 23) \
  X(sensor, kTendonLimitVel, mjtSensor, mjSENS_TENDONLIMITVEL, 24) \
  X(sensor, kTendonLimitFrc, mjtSensor, mjSENS_TENDONLIMITFRC, 25) \
  X(sensor, kFramePos, mjtSensor, mjSENS_FRAMEPOS, 26)             \
  X(sensor, kFrameQuat, mjtSensor, mjSENS_FRAMEQUAT, 27)           \
  X(sensor, kFrameXAxis, mjtSensor, mjSENS_FRAMEXAXIS, 28)         \
  X(sensor, kFrameYAxis, mjtSensor, mjSENS_FRAMEYAXIS, 29)         \
  X(sensor, kFrameZAxis, mjtSensor, mjSENS_FRAMEZAXIS, 30)         \
  X(sensor, kFrameLinVel, mjtSensor, mjSENS_FRAMELINVEL, 31)       \
  X(sensor, kFrameAngVel, mjtSensor, mjSENS_FRAMEANGVEL, 32)       \
  X(sensor, kFrameLinAcc, mjtSensor, mjSENS_FRAMELINACC, 33)       \
  X(sensor, kFrameAngAcc, mjtSensor, mjSENS_FRAMEANGACC, 34)       \
  X(sensor, kSubtreeCom, mjtSensor, mjSENS_SUBTREECOM, 35)         \
  X(sensor, kSubtreeLinVel, mjtSensor, mjSENS_SUBTREELINVEL, 36)   \
  X(sensor, kSubtreeAngMom, mjtSensor, mjSENS_SUBTREEANGMOM, 37)   \
  X(sensor, kInsideSite, mjtSensor, mjSENS_INSIDESITE, 38)         \
  X(sensor, kGeomDist, mjtSensor, mjSENS_GEOMDIST, 39)             \
  X(sensor, kGeomNormal, mjtSensor, mjSENS_GEOMNORMAL, 40)         \
  X(sensor, kGeomFromTo, mjtSensor, mjSENS_GEOMFROMTO, 41)         \
  X(sensor, kContact, mjtSensor, mjSENS_CONTACT, 42)               \
  X(sensor, kPotential, mjtSensor, mjSENS_E_POTENTIAL, 43)         \
  X(sensor, kKinetic, mjtSensor, mjSENS_E_KINETIC, 44)             \
  X(sensor, kClock, mjtSensor, mjSENS_CLOCK, 45)                   \
  X(sensor, kTactile, mjtSensor, mjSENS_TACTILE, 46)               \
  X(sensor, kPlugin, mjtSensor, mjSENS_PLUGIN, 47)                 \
  X(sensor, kUser, mjtSensor, mjSENS_USER, 48)
MUJACOBIAN_SENSORS(MUJACOBIAN_ENUMERATOR)

// The functions that differentiate sensors, one per family. `rows` is zero on entry.
void sense_constant(Sensing& s, int sensor, SensorRows& rows);
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
void sense_touch_grid(Sensing& s, int sensor, SensorRows& rows);
void sense_distance(Sensing& s, int sensor, SensorRows& rows);
void sense_ray(Sensing& s, int sensor, SensorRows& rows);
void sense_tactile(Sensing& s, int sensor, SensorRows& rows);

// Functions that return why one sensor of a type is not supported, null if it is.
const char* actuator_sensor_refusal(const ModelView& m, int sensor);
const char* torque_refusal(const ModelView& m, int sensor);
const char* contact_sensor_refusal(const ModelView& m, int sensor);
const char* plugin_sensor_refusal(const ModelView& m, int sensor);

// Results of the forward dynamics that a sensor reads.
enum class Reads {
  kState,            // none: position, velocity and inputs suffice, also for actuator forces
  kAcceleration,     // derivatives of all accelerations
  kConstraintForce,  // forces of limits or contacts, with the accelerations of their components
};

// How the values depend on parameters of the model while the state is fixed. adjoint/sensed.cc
// lists the parameters that matter in each case.
enum class Dependence {
  kUnsupported,          // not derived: all parameters except frames raise
  kNone,                 // not at all
  kLimitPosition,        // on the range of the joint
  kGeometry,             // on poses and sizes of geoms
  kActuatorForce,        // on gains and biases of actuators
  kLinearAcceleration,   // on the acceleration, and directly on gravity
  kAngularAcceleration,  // on the acceleration
  kJointLimitForce,      // on the force of a joint limit
  kConstraintForce,      // on forces of contacts or of a tendon limit
  kWrench,               // on inertia, gravity and all forces under a site
  kSubtree,              // on the masses of a subtree
  kPotential,            // on masses, gravity and springs
  kKinetic,              // on inertia
};

struct SensorType {
  // bits of `flags`
  static constexpr int kReadsFrame = 1;      // reads the frame of its object, such as a camera
  static constexpr int kDistanceCutoff = 2;  // its cutoff is a search distance and clamps nothing
  static constexpr int kCallsEngine = 4;     // its derivatives need a call of MuJoCo with the data

  int type;                                                           // mjtSensor
  void (*sense)(Sensing& s, int sensor, SensorRows& rows) = nullptr;  // null: unsupported
  Reads reads = Reads::kState;
  Dependence parameters = Dependence::kUnsupported;
  int flags = 0;
  const char* (*refusal)(const ModelView& m, int sensor) = nullptr;  // null: supported
  const char* unsupported = nullptr;                                 // reason for all sensors
};

// One row per type: type, function, reads, parameters, flags, refusal. The order has no meaning.
inline constexpr SensorType kSensorTypes[] = {
    // constants
    {sensor::kClock, sense_constant, Reads::kState, Dependence::kNone},
    {sensor::kInsideSite, sense_constant, Reads::kState, Dependence::kGeometry},

    // joints
    {sensor::kJointPos, sense_joint, Reads::kState, Dependence::kNone},
    {sensor::kJointVel, sense_joint, Reads::kState, Dependence::kNone},
    {sensor::kBallQuat, sense_joint, Reads::kState, Dependence::kNone},
    {sensor::kBallAngVel, sense_joint, Reads::kState, Dependence::kNone},

    // tendons and actuators
    {sensor::kTendonPos, sense_path, Reads::kState, Dependence::kNone},
    {sensor::kTendonVel, sense_path, Reads::kState, Dependence::kNone},
    {sensor::kActuatorPos, sense_path, Reads::kState, Dependence::kNone, 0,
     actuator_sensor_refusal},
    {sensor::kActuatorVel, sense_path, Reads::kState, Dependence::kNone, 0,
     actuator_sensor_refusal},
    {sensor::kActuatorFrc, sense_path, Reads::kState, Dependence::kActuatorForce, 0,
     actuator_sensor_refusal},
    {sensor::kJointActFrc, sense_path, Reads::kState, Dependence::kActuatorForce},
    {sensor::kTendonActFrc, sense_path, Reads::kState, Dependence::kActuatorForce},

    // limits of joints and tendons
    {sensor::kJointLimitPos, sense_limit, Reads::kState, Dependence::kLimitPosition},
    {sensor::kJointLimitVel, sense_limit, Reads::kState, Dependence::kNone},
    {sensor::kJointLimitFrc, sense_limit, Reads::kConstraintForce, Dependence::kJointLimitForce},
    {sensor::kTendonLimitPos, sense_limit, Reads::kState, Dependence::kNone},
    {sensor::kTendonLimitVel, sense_limit, Reads::kState, Dependence::kNone},
    {sensor::kTendonLimitFrc, sense_limit, Reads::kConstraintForce, Dependence::kConstraintForce},

    // frames of objects
    {sensor::kFramePos, sense_frame, Reads::kState, Dependence::kGeometry, SensorType::kReadsFrame},
    {sensor::kFrameQuat, sense_frame, Reads::kState, Dependence::kGeometry,
     SensorType::kReadsFrame},
    {sensor::kFrameXAxis, sense_frame, Reads::kState, Dependence::kGeometry,
     SensorType::kReadsFrame},
    {sensor::kFrameYAxis, sense_frame, Reads::kState, Dependence::kGeometry,
     SensorType::kReadsFrame},
    {sensor::kFrameZAxis, sense_frame, Reads::kState, Dependence::kGeometry,
     SensorType::kReadsFrame},
    {sensor::kFrameLinVel, sense_frame, Reads::kState, Dependence::kGeometry,
     SensorType::kReadsFrame},
    {sensor::kFrameAngVel, sense_frame, Reads::kState, Dependence::kGeometry,
     SensorType::kReadsFrame},
    {sensor::kFrameLinAcc, sense_inertial, Reads::kAcceleration, Dependence::kLinearAcceleration,
     SensorType::kReadsFrame},
    {sensor::kFrameAngAcc, sense_inertial, Reads::kAcceleration, Dependence::kAngularAcceleration,
     SensorType::kReadsFrame},
    {sensor::kCamProjection, sense_projection, Reads::kState, Dependence::kGeometry,
     SensorType::kReadsFrame},

    // instruments at sites
    {sensor::kAccelerometer, sense_inertial, Reads::kAcceleration, Dependence::kLinearAcceleration},
    {sensor::kVelocimeter, sense_inertial, Reads::kState, Dependence::kGeometry},
    {sensor::kGyro, sense_inertial, Reads::kState, Dependence::kGeometry},
    {sensor::kMagnetometer, sense_inertial, Reads::kState, Dependence::kGeometry},
    {sensor::kForce, sense_wrench, Reads::kAcceleration, Dependence::kWrench},
    {sensor::kTorque, sense_wrench, Reads::kAcceleration, Dependence::kWrench, 0, torque_refusal},

    // subtrees and energies
    {sensor::kSubtreeCom, sense_subtree, Reads::kState, Dependence::kSubtree},
    {sensor::kSubtreeLinVel, sense_subtree, Reads::kState, Dependence::kSubtree},
    {sensor::kSubtreeAngMom, sense_subtree, Reads::kState, Dependence::kSubtree},
    {sensor::kPotential, sense_energy, Reads::kState, Dependence::kPotential},
    {sensor::kKinetic, sense_energy, Reads::kState, Dependence::kKinetic},

    // contacts, rays and distances
    {sensor::kTouch, sense_touch, Reads::kConstraintForce, Dependence::kConstraintForce},
    {sensor::kContact, sense_contact, Reads::kConstraintForce, Dependence::kConstraintForce,
     SensorType::kDistanceCutoff, contact_sensor_refusal},
    {sensor::kPlugin, sense_touch_grid, Reads::kConstraintForce, Dependence::kUnsupported, 0,
     plugin_sensor_refusal},
    {sensor::kTactile, sense_tactile, Reads::kState, Dependence::kGeometry},
    {sensor::kRangefinder, sense_ray, Reads::kState, Dependence::kGeometry,
     SensorType::kCallsEngine},
    {sensor::kGeomDist, sense_distance, Reads::kState, Dependence::kGeometry,
     SensorType::kCallsEngine},
    {sensor::kGeomNormal, sense_distance, Reads::kState, Dependence::kGeometry,
     SensorType::kCallsEngine},
    {sensor::kGeomFromTo, sense_distance, Reads::kState, Dependence::kGeometry,
     SensorType::kDistanceCutoff | SensorType::kCallsEngine},

    // unsupported
    {.type = sensor::kUser, .unsupported = "a user callback computes it"},
};

// The row of types that the table does not list.
inline constexpr SensorType kUnknownSensorType{.type = -1, .unsupported = "its type is not known"};

// Returns the row of a sensor's type.
inline const SensorType& sensor_type(const ModelView& m, int sensor) {
  constexpr int kTypes = 128;
  static constexpr auto kIndex = index_rows<kTypes>(kSensorTypes, &SensorType::type);
  const int type = m.sensor_type[sensor];
  const int row = type >= 0 && type < kTypes ? kIndex[type] : -1;
  return row < 0 ? kUnknownSensorType : kSensorTypes[row];
}

}  // namespace mujacobian

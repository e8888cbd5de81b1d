#include "sensor/sensor.h"

#include <algorithm>
#include <cmath>

#include "actuation/transmission.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

void write(const ModelView& m, int sensor, const SensorRows& rows, const SensorOutputs& out) {
  const std::size_t nx = 2 * m.nv + m.na, nu = m.nu, nv = m.nv;
  for (int r = 0; r < rows.dim(); r++) {
    const std::size_t at = m.sensor_adr[sensor] + r;
    if (out.C) std::memcpy(out.C + at * nx, rows.state(r), nx * sizeof(double));
    if (out.D) std::memcpy(out.D + at * nu, rows.ctrl(r), nu * sizeof(double));
    if (out.Df) std::memcpy(out.Df + at * nv, rows.force(r), nv * sizeof(double));
    const std::size_t direct = out.forces.count;
    if (direct) std::memcpy(out.direct + at * direct, rows.direct(r), direct * sizeof(double));
  }
}

bool is_wanted(const unsigned char* wanted, int sensor) { return !wanted || wanted[sensor]; }

void sense_nothing(Sensing&, int, SensorRows&) {}

using Family = void (*)(Sensing&, int, SensorRows&);

// The function that differentiates sensors of a type, null if there is none.
Family family(int type) {
  switch (type) {
    case sensor::kClock:
    case sensor::kInsideSite:
      return sense_nothing;
    case sensor::kJointPos:
    case sensor::kJointVel:
    case sensor::kBallQuat:
    case sensor::kBallAngVel:
      return sense_joint;
    case sensor::kTendonPos:
    case sensor::kTendonVel:
    case sensor::kActuatorPos:
    case sensor::kActuatorVel:
    case sensor::kActuatorFrc:
    case sensor::kJointActFrc:
    case sensor::kTendonActFrc:
      return sense_path;
    case sensor::kJointLimitPos:
    case sensor::kJointLimitVel:
    case sensor::kJointLimitFrc:
    case sensor::kTendonLimitPos:
    case sensor::kTendonLimitVel:
    case sensor::kTendonLimitFrc:
      return sense_limit;
    case sensor::kFramePos:
    case sensor::kFrameQuat:
    case sensor::kFrameXAxis:
    case sensor::kFrameYAxis:
    case sensor::kFrameZAxis:
    case sensor::kFrameLinVel:
    case sensor::kFrameAngVel:
      return sense_frame;
    case sensor::kGyro:
    case sensor::kVelocimeter:
    case sensor::kAccelerometer:
    case sensor::kMagnetometer:
    case sensor::kFrameLinAcc:
    case sensor::kFrameAngAcc:
      return sense_inertial;
    case sensor::kSubtreeCom:
    case sensor::kSubtreeLinVel:
    case sensor::kSubtreeAngMom:
      return sense_subtree;
    case sensor::kCamProjection:
      return sense_projection;
    case sensor::kPotential:
    case sensor::kKinetic:
      return sense_energy;
    case sensor::kForce:
    case sensor::kTorque:
      return sense_wrench;
    case sensor::kTouch:
      return sense_touch;
    case sensor::kContact:
      return sense_contact;
    case sensor::kRangefinder:
      return sense_ray;
    case sensor::kGeomDist:
    case sensor::kGeomNormal:
    case sensor::kGeomFromTo:
      return sense_distance;
    default:
      return nullptr;
  }
}

// Forces of actuators do not see the acceleration, those of limits and contacts only in components
// where it is differentiated anyway.
bool needs_acceleration(const ModelView& m, int sensor) {
  switch (m.sensor_type[sensor]) {
    case sensor::kActuatorFrc:
    case sensor::kJointActFrc:
    case sensor::kTendonActFrc:
    case sensor::kJointLimitFrc:
    case sensor::kTendonLimitFrc:
    case sensor::kTouch:
    case sensor::kContact:
      return false;
    default:
      return m.sensor_needstage[sensor] == stage::kAcc;
  }
}

}  // namespace

bool is_cut_off(const ModelView& m, const DataView& d, int sensor, int r) {
  const double cutoff = m.sensor_cutoff[sensor];
  const int type = m.sensor_type[sensor], data_type = m.sensor_datatype[sensor];
  if (m.opt.disableflags & disable::kSensor) return true;
  // these read their cutoff as a search distance
  if (cutoff <= 0 || type == sensor::kContact || type == sensor::kGeomFromTo) return false;
  const double value = d.sensordata[m.sensor_adr[sensor] + r];
  // tie: cutoff
  return (data_type == datatype::kReal && std::abs(value) >= cutoff) ||
         // tie: cutoff of a positive sensor
         (data_type == datatype::kPositive && value >= cutoff);
}

bool senses_acceleration(const ModelView& m, const unsigned char* wanted) {
  for (int s = 0; s < m.nsensor; s++) {
    if (is_wanted(wanted, s) && needs_acceleration(m, s)) return true;
  }
  return false;
}

bool senses_solution(const ModelView& m, const unsigned char* wanted) {
  for (int s = 0; s < m.nsensor; s++) {
    if (is_wanted(wanted, s) && m.sensor_needstage[s] == stage::kAcc) return true;
  }
  return false;
}

bool senses_force(const ModelView& m) {
  for (int s = 0; s < m.nsensor; s++) {
    switch (m.sensor_type[s]) {
      case sensor::kJointLimitFrc:
      case sensor::kTendonLimitFrc:
      case sensor::kTouch:
      case sensor::kContact:
        return true;
    }
  }
  return false;
}

const char* sensor_refusal(const ModelView& m, int sensor) {
  if (m.sensor_delay[sensor] > 0 || m.sensor_history[2 * sensor] > 0) {
    return "its values come from a history buffer";
  }
  const int id = m.sensor_objid[sensor];
  switch (m.sensor_type[sensor]) {
    case sensor::kActuatorPos:
    case sensor::kActuatorVel:
    case sensor::kActuatorFrc:
      return transmission_refusal(m, id);
    case sensor::kTorque:
      if (m.site_bodyid[id] > 0) return nullptr;
      return "MuJoCo sums the world's torques about different points";
    case sensor::kContact:
      if (m.sensor_intprm[kNSens * sensor] < 1 << contact_data::kCount) return nullptr;
      return "a field of its data";
    case sensor::kTactile:
      return "tactile sensors";
    case sensor::kPlugin:
      return "it is a plugin";
    case sensor::kUser:
      return "a user callback computes it";
    default:
      return family(m.sensor_type[sensor]) ? nullptr : "its type";
  }
}

void sense(const ModelView& m, const DataView& d, const ForwardDynamics& f,
           const SensorOutputs& out, Arena& arena) {
  const bool disabled = m.opt.disableflags & disable::kSensor;
  int widest = 0;
  for (int s = 0; s < m.nsensor; s++) widest = std::max(widest, m.sensor_dim[s]);
  Sensing sensing(m, d, f, out.forces, arena);
  SensorRows rows(m, f, widest, out.forces.count, arena);
  for (int s = 0; s < m.nsensor; s++) {
    if (!is_wanted(out.wanted, s)) continue;
    rows.reset(m.sensor_dim[s]);
    // a disabled sensor keeps its old value
    if (!disabled) {
      family(m.sensor_type[s])(sensing, s, rows);
      rows.settle();
      for (int r = 0; r < rows.dim(); r++) {
        if (is_cut_off(m, d, s, r)) rows.clear(r);
      }
    }
    write(m, s, rows, out);
  }
}

}  // namespace mujacobian

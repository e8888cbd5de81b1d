#include "sensor/sensor.h"

#include <cmath>

#include "layout/engine.h"
#include "layout/enums.h"
#include "smooth/unsupported.h"

namespace mujacobian {
namespace {

// Zero the rows of values that the cutoff holds constant                                  (SEN-2)
void cut_off(const ModelView& m, const DataView& d, int sensor, SensorRows& rows) {
  const double cutoff = m.sensor_cutoff[sensor];
  const int type = m.sensor_type[sensor], data_type = m.sensor_datatype[sensor];
  // these read their cutoff as a search distance
  if (cutoff <= 0 || type == sensor::kContact || type == sensor::kGeomFromTo) return;
  for (int r = 0; r < rows.dim(); r++) {
    double value = d.sensordata[m.sensor_adr[sensor] + r];
    bool real = data_type == datatype::kReal && std::abs(value) >= cutoff;
    bool positive = data_type == datatype::kPositive && value >= cutoff;
    if (real || positive) rows.clear(r);
  }
}

void write(const ModelView& m, int sensor, const SensorRows& rows, const SensorOutputs& out) {
  const std::size_t nx = 2 * m.nv + m.na, nu = m.nu, nv = m.nv;
  for (int r = 0; r < rows.dim(); r++) {
    const std::size_t at = m.sensor_adr[sensor] + r;
    if (out.C) std::memcpy(out.C + at * nx, rows.state(r), nx * sizeof(double));
    if (out.D) std::memcpy(out.D + at * nu, rows.ctrl(r), nu * sizeof(double));
    if (out.Df) std::memcpy(out.Df + at * nv, rows.force(r), nv * sizeof(double));
  }
}

void differentiate(Sensing& s, int sensor, SensorRows& rows) {
  switch (s.m.sensor_type[sensor]) {
    case sensor::kJointPos:
    case sensor::kJointVel:
    case sensor::kBallQuat:
    case sensor::kBallAngVel:
      return sense_joint(s, sensor, rows);
    case sensor::kClock:
      return;
    default:
      throw Unsupported(element_name(s.m, object::kSensor, sensor), "its type");
  }
}

}  // namespace

bool senses_acceleration(const ModelView& m) {
  for (int s = 0; s < m.nsensor; s++) {
    if (m.sensor_needstage[s] == stage::kAcc) return true;
  }
  return false;
}

const char* sensor_refusal(const ModelView& m, int sensor) {
  if (m.sensor_delay[sensor] > 0 || m.sensor_history[2 * sensor] > 0) {
    return "its values come from a history buffer";
  }
  switch (m.sensor_type[sensor]) {
    case sensor::kJointPos:
    case sensor::kJointVel:
    case sensor::kBallQuat:
    case sensor::kBallAngVel:
    case sensor::kClock:
      return nullptr;
    case sensor::kTactile:
      return "tactile sensors";
    case sensor::kPlugin:
      return "it is a plugin";
    case sensor::kUser:
      return "a user callback computes it";
    default:
      return "its type";
  }
}

void sense(const ModelView& m, const DataView& d, const Forward& f, const SensorOutputs& out,
           Arena& arena) {
  const bool disabled = m.opt.disableflags & disable::kSensor;
  Sensing sensing(m, d, f, arena);
  for (int s = 0; s < m.nsensor; s++) {
    SensorRows rows(m, f, m.sensor_dim[s], arena);
    // a disabled sensor keeps its old value
    if (!disabled) {
      differentiate(sensing, s, rows);
      cut_off(m, d, s, rows);
    }
    write(m, s, rows, out);
  }
}

}  // namespace mujacobian

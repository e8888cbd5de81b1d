#include "sensor/sensor.h"

#include <algorithm>
#include <cmath>

#include "actuation/transmission.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/sleep.h"
#include "layout/unsupported.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

void write(const ModelView& m, int sensor, const SensorRows& rows, const SensorOutputs& out) {
  const std::size_t nx = state_size(m), nu = m.nu, nv = m.nv;
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

// Returns whether the value in this state comes from the history buffer, which is constant.
// (SEN-32)
bool reads_history(const ModelView& m, const DataView& d, int sensor) {
  if (!has_history(m, sensor)) return false;
  if (m.sensor_delay[sensor] > 0) return true;
  // the buffer begins with the time at which an interval began
  const double begin = d.history[m.sensor_historyadr[sensor]];
  // tie: interval of a sensor
  return begin + m.sensor_interval[2 * sensor] > d.time;
}

}  // namespace

bool is_cut_off(const ModelView& m, const DataView& d, int sensor, int r) {
  const double cutoff = m.sensor_cutoff[sensor];
  const int data_type = m.sensor_datatype[sensor];
  if (m.opt.disableflags & disable::kSensor) return true;
  if (cutoff <= 0 || sensor_type(m, sensor).flags & SensorType::kDistanceCutoff) return false;
  const double value = d.sensordata[m.sensor_adr[sensor] + r];
  // tie: cutoff
  return (data_type == datatype::kReal && std::abs(value) >= cutoff) ||
         // tie: cutoff of a positive sensor
         (data_type == datatype::kPositive && value >= cutoff);
}

bool is_held(const ModelView& m, const DataView& d, int sensor) {
  return (m.opt.disableflags & disable::kSensor) || element_asleep(m, d, object::kSensor, sensor) ||
         reads_history(m, d, sensor);
}

bool senses_acceleration(const ModelView& m, const unsigned char* wanted) {
  for (int s = 0; s < m.nsensor; s++) {
    if (is_wanted(wanted, s) && sensor_type(m, s).reads == Reads::kAcceleration) return true;
  }
  return false;
}

bool senses_solution(const ModelView& m, const unsigned char* wanted) {
  for (int s = 0; s < m.nsensor; s++) {
    if (is_wanted(wanted, s) && m.sensor_needstage[s] == stage::kAcc) return true;
  }
  return false;
}

bool senses_force(const ModelView& m, const unsigned char* wanted) {
  for (int s = 0; s < m.nsensor; s++) {
    if (is_wanted(wanted, s) && sensor_type(m, s).reads == Reads::kConstraintForce) return true;
  }
  return false;
}

bool calls_engine(const ModelView& m, const unsigned char* wanted) {
  for (int s = 0; s < m.nsensor; s++) {
    if (is_wanted(wanted, s) && sensor_type(m, s).flags & SensorType::kCallsEngine) return true;
  }
  return false;
}

const char* actuator_sensor_refusal(const ModelView& m, int sensor) {
  return transmission_refusal(m, m.sensor_objid[sensor]);
}

const char* torque_refusal(const ModelView& m, int sensor) {
  if (m.site_bodyid[m.sensor_objid[sensor]] > 0) return nullptr;
  return "MuJoCo sums the world's torques about different points";
}

const char* contact_sensor_refusal(const ModelView& m, int sensor) {
  if (m.sensor_intprm[kNSens * sensor] < 1 << contact_data::kCount) return nullptr;
  return "a field of its data is not known";
}

const char* plugin_sensor_refusal(const ModelView& m, int sensor) {
  const int plugin = m.sensor_plugin[sensor];
  return plugin >= 0 && is_plugin(m, plugin, kTouchGridPlugin) ? nullptr : "it is a plugin";
}

bool has_history(const ModelView& m, int sensor) {
  const bool delayed = m.sensor_delay[sensor] > 0 || m.sensor_interval[2 * sensor] > 0;
  return m.sensor_history[2 * sensor] > 0 && delayed && !m.open_histories;
}

const char* sensor_refusal(const ModelView& m, int sensor) {
  if (m.sensor_type[sensor] == sensor::kPlugin && m.sensor_history[2 * sensor] > 0) {
    return "it is a plugin with a history buffer";
  }
  const SensorType& type = sensor_type(m, sensor);
  return type.refusal ? type.refusal(m, sensor) : type.unsupported;
}

// The value does not depend on the state, except for jumps.
void sense_constant(Sensing&, int, SensorRows&) {}

void sense(const ModelView& m, const DataView& d, const ForwardDynamics& f,
           const SensorOutputs& out, Arena& arena) {
  int widest = 0;
  for (int s = 0; s < m.nsensor; s++) widest = std::max(widest, m.sensor_dim[s]);
  Sensing sensing(m, d, f, out.forces, arena);
  SensorRows rows(m, f, widest, out.forces.count, arena);
  for (int s = 0; s < m.nsensor; s++) {
    if (!is_wanted(out.wanted, s)) continue;
    rows.reset(m.sensor_dim[s]);
    if (!is_held(m, d, s)) {
      try {
        sensor_type(m, s).sense(sensing, s, rows);
      } catch (Unsupported& error) {
        error.sensor = s;
        throw;
      }
      rows.settle();
      for (int r = 0; r < rows.dim(); r++) {
        if (is_cut_off(m, d, s, r)) rows.clear(r);
      }
    }
    write(m, s, rows, out);
  }
}

}  // namespace mujacobian

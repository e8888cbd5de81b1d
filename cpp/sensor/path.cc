// Tendons and actuators: their lengths, rates and forces.
#include "layout/enums.h"
#include "sensor/sensor.h"
#include "smooth/actuation.h"
#include "smooth/tendon.h"
#include "smooth/transmission.h"

namespace mujacobian {
namespace {

// Row 0 += scale dl
void add_length(const Path& p, double scale, SensorRows& rows) {
  for (int k = 0; k < p.n; k++) rows.q(0, p.dofs[k]) += scale * p.dlength[k];
}

// Row 0 += scale d(m v)                                                                  (PATH-2)
void add_rate(Sensing& s, const Path& p, double scale, SensorRows& rows) {
  double* rate = s.arena.take<double>(p.n);
  path_rate_derivative(p, s.d.qvel, rate);
  for (int k = 0; k < p.n; k++) {
    rows.q(0, p.dofs[k]) += scale * rate[k];
    rows.v(0, p.dofs[k]) += scale * p.moment[k];
  }
}

// Row 0 += scale d(force of the law)
void add_law(Sensing& s, const PathForce& law, double scale, SensorRows& rows) {
  if (scale == 0) return;
  add_length(law.path, scale * law.dlength, rows);
  if (law.drate != 0) add_rate(s, law.path, scale * law.drate, rows);
  for (int k = 0; k < law.input_count; k++) {
    rows.input(0, law.inputs[k].input) += scale * law.inputs[k].force;
  }
}

// Row 0 += d(actuator_force)                                                             (SEN-14)
void add_actuator_force(Sensing& s, const ActuatorForce& a, SensorRows& rows) {
  add_law(s, a.law, a.slope, rows);
  add_law(s, a.mechanical, 1, rows);
  if (a.share == 0) return;
  const int tendon = s.m.actuator_trnid[2 * a.actuator];
  const ActuatorForces& all = s.actuators();
  for (int k = 0; k < all.count; k++) {
    if (pulls_tendon(s.m, all.force[k].actuator, tendon)) {
      add_law(s, all.force[k].law, -a.slope * a.share, rows);
    }
  }
}

void sense_tendon(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const int tendon = m.sensor_objid[sensor];
  if (m.sensor_type[sensor] == sensor::kTendonVel) return add_rate(s, s.tendon(tendon), 1, rows);
  const int first = m.ten_J_rowadr[tendon];
  for (int k = first; k < first + m.ten_J_rownnz[tendon]; k++) {
    rows.q(0, m.ten_J_colind[k]) = s.d.ten_J[k];
  }
}

void sense_transmission(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const int actuator = m.sensor_objid[sensor];
  const bool on_tendon = m.actuator_trntype[actuator] == transmission::kTendon;
  const Path path = on_tendon ? s.tendon(m.actuator_trnid[2 * actuator])
                              : transmission_path(m, s.d, actuator, nullptr, s.arena);
  const double gear = on_tendon ? m.actuator_gear[6 * m.actuator_outadr[actuator]] : 1;
  if (m.sensor_type[sensor] == sensor::kActuatorPos) return add_length(path, gear, rows);
  add_rate(s, path, gear, rows);
}

// The actuators' force on a joint, with the gravity compensation that passes through them; constant
// where the joint's range holds it
void sense_joint_force(Sensing& s, int sensor, SensorRows& rows) {
  const int joint = s.m.sensor_objid[sensor], dof = s.m.jnt_dofadr[joint];
  const unsigned char* frozen = s.f.paths.actuation.frozen;
  if (frozen && frozen[dof]) return;
  rows.add_generalized(0, 1, s.actuator_force(), dof);
  if (s.m.jnt_actgravcomp[joint]) rows.add_generalized(0, 1, s.gravity_compensation(), dof);
}

}  // namespace

void sense_path(Sensing& s, int sensor, SensorRows& rows) {
  const int type = s.m.sensor_type[sensor], id = s.m.sensor_objid[sensor];
  switch (type) {
    case sensor::kTendonPos:
    case sensor::kTendonVel:
      return sense_tendon(s, sensor, rows);
    case sensor::kActuatorPos:
    case sensor::kActuatorVel:
      return sense_transmission(s, sensor, rows);
    case sensor::kJointActFrc:
      return sense_joint_force(s, sensor, rows);
    default: {
      const ActuatorForces& all = s.actuators();
      for (int k = 0; k < all.count; k++) {
        const int a = all.force[k].actuator;
        bool seen = type == sensor::kActuatorFrc ? a == id : pulls_tendon(s.m, a, id);
        if (seen) add_actuator_force(s, all.force[k], rows);
      }
    }
  }
}

}  // namespace mujacobian

// Tendons and actuators: their lengths, rates and forces.
#include "actuation/actuation.h"
#include "actuation/orientation.h"
#include "actuation/transmission.h"
#include "forces/passive.h"
#include "forces/tendon.h"
#include "layout/enums.h"
#include "sensor/type.h"
#include "spatial/rotation.h"

namespace mujacobian {
namespace {

// Row r += scale dl
void add_length(const Path& p, double scale, SensorRows& rows, int r = 0) {
  for (int k = 0; k < p.n; k++) rows.q(r, p.dofs[k]) += scale * p.dlength[k];
}

// Row r += scale d(m v)                                                                  (PATH-2)
void add_rate(Sensing& s, const Path& p, double scale, SensorRows& rows, int r = 0) {
  double* rate = s.arena.take<double>(p.n);
  path_rate_derivative(p, s.d.qvel, rate);
  for (int k = 0; k < p.n; k++) {
    rows.q(r, p.dofs[k]) += scale * rate[k];
    rows.v(r, p.dofs[k]) += scale * p.moment[k];
  }
}

// Row r += scale d(force along a path)
void add_path_change(Sensing& s, const PathForce& f, double scale, SensorRows& rows, int r = 0) {
  if (scale == 0) return;
  add_length(f.path, scale * f.dlength, rows, r);
  if (f.drate != 0) add_rate(s, f.path, scale * f.drate, rows, r);
  for (int k = 0; k < f.other_count; k++) {
    add_rate(s, *f.others[k].path, scale * f.others[k].force, rows, r);
  }
  for (int k = 0; k < f.input_count; k++) {
    rows.input(r, f.inputs[k].input) += scale * f.inputs[k].force;
  }
}

// Row 0 += scale d(actuator_force)                                                       (SEN-14)
void add_actuator_force(Sensing& s, const ActuatorForce& a, double scale, SensorRows& rows) {
  add_path_change(s, a.unlimited, scale * a.slope, rows);
  add_path_change(s, a.mechanical, scale, rows);
  if (a.share == 0) return;
  const int tendon = s.m.actuator_trnid[2 * a.actuator];
  const ActuatorForces& all = s.actuators();
  for (int k = 0; k < all.count; k++) {
    if (pulls_tendon(s.m, all.force[k].actuator, tendon)) {
      add_path_change(s, all.force[k].unlimited, -scale * a.slope * a.share, rows);
    }
  }
}

double gear_of(const ModelView& m, int actuator) {
  return m.actuator_gear[6 * m.actuator_outadr[actuator]];
}

// Adds the tension of actuators
double add_actuators(Sensing& s, int tendon, SensorRows& rows) {
  const ModelView& m = s.m;
  double sum = 0;
  for (int a = 0; a < m.nactuator; a++) {
    if (pulls_tendon(m, a, tendon)) sum += gear_of(m, a) * s.d.actuator_force[m.actuator_outadr[a]];
  }
  const ActuatorForces& all = s.actuators();
  for (int k = 0; k < all.count; k++) {
    const int a = all.force[k].actuator;
    if (pulls_tendon(m, a, tendon)) add_actuator_force(s, all.force[k], gear_of(m, a), rows);
  }
  return sum;
}

// Adds the tension of limit, friction and equality rows. Their forces act along +-ten_J, or along
// -P' ten_J for the second tendon of a coupling.
double add_rows(Sensing& s, int tendon, SensorRows& rows) {
  const ModelView& m = s.m;
  double sum = 0;
  for (int k = 0; k < s.f.blocks.count; k++) {
    const Block& b = s.f.blocks.block[k];
    if (!b.active) continue;
    const bool equality = b.type == constraint::kEquality && m.eq_type[b.id] == equality::kTendon;
    const bool own = b.type == constraint::kLimitTendon || b.type == constraint::kFrictionTendon;
    double weight = 0;
    if (own && b.id == tendon) {
      for (int i = 0; i < b.n && weight == 0; i++) weight = b.J[i] * b.path[0].moment[i];
      weight = (weight > 0) - (weight < 0);
    }
    if (equality && m.eq_obj1id[b.id] == tendon) weight = 1;
    if (equality && m.eq_obj2id[b.id] == tendon) {
      const Polynomial p = polynomial(m, s.d, b.id);
      add_length(s.tendon(tendon), -p.curvature * b.force[0], rows);
      weight = -p.slope;
    }
    if (weight == 0) continue;
    s.add_force(rows, 0, k, &weight);
    sum += weight * b.force[0];
  }
  return sum;
}

// Adds the tension that accelerates the tendon's own inertia
double add_armature(Sensing& s, int tendon, SensorRows& rows) {
  const double armature = tendon_armature(s.m, tendon);
  if (armature == 0) return 0;
  const Path& p = s.tendon(tendon);
  const TendonAcceleration a =
      tendon_acceleration(s.m, s.d, tendon, p, s.f.acc, s.still_motion(), s.arena);
  for (int k = 0; k < p.n; k++) {
    rows.q(0, p.dofs[k]) -= armature * a.dq[k];
    rows.v(0, p.dofs[k]) -= armature * a.dv[k];
    rows.add_acceleration(0, -armature * p.moment[k], p.dofs[k]);
  }
  return -armature * a.value;
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
  const double gear = on_tendon ? gear_of(m, actuator) : 1;
  if (m.sensor_type[sensor] == sensor::kActuatorPos) return add_length(path, gear, rows);
  add_rate(s, path, gear, rows);
}

// The three outputs of an orientation servo: rotation vector, angular velocity or torque
void sense_orientation(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const int actuator = m.sensor_objid[sensor], type = m.sensor_type[sensor];
  if (type == sensor::kActuatorFrc) {
    if (s.f.paths.actuation.count == 0 || actuator_disabled(m, actuator)) return;
    PathForce torque[3];
    orientation_forces(m, s.d, actuator, actuator_variables<Number>(m, s.d, actuator), torque,
                       s.arena);
    for (int k = 0; k < 3; k++) add_path_change(s, torque[k], 1, rows, k);
    return;
  }
  const OrientationPath path = orientation_path(m, s.d, actuator, s.arena);
  if (type == sensor::kActuatorVel) {
    for (int k = 0; k < 3; k++) add_rate(s, path.axis[k], 1, rows, k);
    return;
  }
  // d log R = Jr^-1(log R) w                                                             (SEN-29)
  const double* length = s.d.actuator_length + m.actuator_outadr[actuator];
  const Mat3 log_rate = right_jacobian_inverse(load3(length));
  const int n = path.axis[0].n;
  for (int i = 0; i < n; i++) {
    const Vec3 turn{path.tangent[i], path.tangent[n + i], path.tangent[2 * n + i]};
    rows.add_q(path.axis[0].dofs[i], log_rate * turn);
  }
}

// The actuators' force on a joint, with the gravity compensation that passes through them. It is
// constant if actfrcrange of the joint clamps it.
void sense_joint_force(Sensing& s, int sensor, SensorRows& rows) {
  const int joint = s.m.sensor_objid[sensor], dof = s.m.jnt_dofadr[joint];
  const unsigned char* frozen = s.f.paths.actuation.frozen;
  if (frozen && frozen[dof]) return;
  rows.add_generalized(0, 1, s.actuator_force(), dof);
  if (s.m.jnt_actgravcomp[joint]) rows.add_generalized(0, 1, s.gravity_compensation(), dof);
}

}  // namespace

double sense_tension(Sensing& s, int tendon, SensorRows& rows) {
  PathForce passive;
  double sum = 0;
  if (tendon_force(s.m, s.d, tendon, s.tendon(tendon), passive)) {
    add_path_change(s, passive, 1, rows);
    sum += passive.force;
  }
  sum += add_actuators(s, tendon, rows);
  sum += add_rows(s, tendon, rows);
  sum += add_armature(s, tendon, rows);
  return sum;
}

void sense_path(Sensing& s, int sensor, SensorRows& rows) {
  const int type = s.m.sensor_type[sensor], id = s.m.sensor_objid[sensor];
  if (rows.dim() == 3) return sense_orientation(s, sensor, rows);
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
        bool acts = type == sensor::kActuatorFrc ? a == id : pulls_tendon(s.m, a, id);
        if (acts) add_actuator_force(s, all.force[k], 1, rows);
      }
    }
  }
}

}  // namespace mujacobian

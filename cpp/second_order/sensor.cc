#include "second_order/sensor.h"

#include "actuation/curvature.h"
#include "actuation/transmission_curvature.h"
#include "forces/tendon_curvature.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "second_order/path.h"
#include "second_order/sensor_form.h"
#include "sensor/sensor.h"
#include "sensor/type.h"
#include "spatial/quaternion.h"

namespace mujacobian {
namespace {

constexpr const char* kMissing = "second derivatives of this type of sensor are not supported";
constexpr const char* kMovingCamera =
    "second derivatives of a camera that follows a body are not supported";

// Returns whether an object is a camera that is not fixed to its body.
bool follows(const ModelView& m, int type, int id) {
  return type == object::kCamera && id >= 0 && m.cam_mode[id] != camera::kFixed;
}

const char* frame_refusal(const ModelView& m, int s) {
  const bool moving = follows(m, m.sensor_objtype[s], m.sensor_objid[s]) ||
                      follows(m, m.sensor_reftype[s], m.sensor_refid[s]);
  return moving ? kMovingCamera : nullptr;
}

const char* actuator_refusal_of(const ModelView& m, int s) {
  if (m.sensor_dim[s] > 1) return kMissing;  // an orientation servo
  return transmission_curvature_refusal(m, m.sensor_objid[s]);
}

// Sensors that read a tendon or joint that actuators pull.
const char* pulled_refusal(const ModelView& m, int s) {
  const int id = m.sensor_objid[s];
  const bool tendon = m.sensor_type[s] == sensor::kTendonActFrc;
  if (!tendon && m.jnt_actgravcomp[id])
    return "second derivatives of gravity compensation are not supported";
  for (int a = 0; a < m.nactuator && !tendon; a++) {
    const char* reason = transmission_curvature_refusal(m, a);
    if (reason && !actuator_disabled(m, a)) return reason;
  }
  return nullptr;
}

// The values are linear in positions and velocities.
void add_nothing(Sensing&, int, const double*, SensorForm&) {}

// The quaternion of a ball joint: quat exp(w / 2), whose second derivative is -quat / 4.  (HSE-6)
void add_ball(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const int j = s.m.sensor_objid[sensor];
  const Quaternion q = normalized(load_quaternion(s.d.qpos + s.m.jnt_qposadr[j]));
  const double value = weights[0] * q.w + dot(load3(weights + 1), q.v);
  for (int k = 0; k < 3; k++) {
    const DofVariable x{DofVariable::kPosition, s.m.jnt_dofadr[j] + k};
    form.add(x, x, -0.25 * value);
  }
}

// Length and rate of a tendon
void add_tendon(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const int tendon = s.m.sensor_objid[sensor];
  const CurvedPath path{s.tendon(tendon), tendon_source(s.m, tendon)};
  add_path_value(s, path, s.m.sensor_type[sensor] == sensor::kTendonVel, weights[0], form);
}

// Length and rate of an actuator
void add_transmission(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const int id = s.m.sensor_objid[sensor];
  const PathCurvature c = length_curvature(s.m, s.d, id, s.arena);
  const bool rate = s.m.sensor_type[sensor] == sensor::kActuatorVel;
  add_path_value(s, {c.of->path, c.source}, rate, path_gear(s.m, id) * weights[0], form);
}

// Returns whether a sensor of actuator forces reads the force of an actuator.
bool reads(const ModelView& m, int sensor, int actuator) {
  const int id = m.sensor_objid[sensor];
  return m.sensor_type[sensor] == sensor::kActuatorFrc ? actuator == id
                                                       : pulls_tendon(m, actuator, id);
}

// Returns whether a force that the sensor reads may have second derivatives.
bool reads_curved(const Sensing& s, int sensor) {
  const Actuation& all = s.f.paths.actuation;
  for (int k = 0; k < all.weight_count; k++) {
    const ForceWeights& w = all.weights[k];
    if (!reads(s.m, sensor, w.actuator)) continue;
    if (w.scaled || is_curved_actuator(s.m, w.actuator)) return true;
  }
  return false;
}

// Adds a force with its weight.
void add_force(Sensing& s, const PathCurvature& c, double weight, SensorForm& form) {
  if (weight == 0 || (c.count == 0 && !is_curved(c.source))) return;
  const CurvedPath path{c.of->path, c.source};
  add_path_function(s.m, s.d, force_function(s.d, c, path, s.arena), weight, form.forms().late,
                    s.arena);
}

// Forces of actuators                                                                      (HSE-20)
void add_actuator(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  if (!reads_curved(s, sensor)) return;
  const ModelView& m = s.m;
  const Actuation& actuation = s.f.paths.actuation;
  const ActuatorForces& all = s.actuators();
  double* by_force = s.arena.zeros<double>(actuation.weight_count);  // before any limit
  int scaled = -1;                                                   // the tendon
  for (int k = 0; k < all.count; k++) {
    const ActuatorForce& f = all.force[k];
    if (!reads(m, sensor, f.actuator)) continue;
    add_force(s, mechanical_curvature(m, s.d, f, s.arena), weights[0], form);
    by_force[k] += weights[0] * f.slope;
    if (!actuation.weights[k].scaled) continue;
    scaled = m.actuator_trnid[2 * f.actuator];
    for (int j = 0; j < all.count; j++) {
      if (!pulls_tendon(m, all.force[j].actuator, scaled)) continue;
      by_force[j] -= weights[0] * f.slope * f.share;
    }
  }
  for (int k = 0; k < all.count; k++) {
    if (by_force[k] == 0) continue;
    add_force(s, unlimited_curvature(m, s.d, all.force[k], s.arena), by_force[k], form);
  }
  if (scaled < 0) return;
  add_force(s, scaling_curvature(m, s.d, actuation, scaled, by_force, s.arena), 1, form);
}

// Forces of actuators on a joint                                                         (HSE-10)
void add_joint_actuators(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const ModelView& m = s.m;
  const Actuation& actuation = s.f.paths.actuation;
  const int dof = m.jnt_dofadr[m.sensor_objid[sensor]];
  if (actuation.frozen && actuation.frozen[dof]) return;
  double* along = s.arena.zeros<double>(m.nv);
  along[dof] = 1;
  const ActuatorCurvatures& all = s.actuator_curvatures();
  for (int k = 0; k < all.count; k++) {
    const PathCurvature& c = all.curvature[k];
    const CurvedPath path{c.of->path, c.source};
    const PathScalar moment{PathScalar::kVirtual, &path, along, nullptr, 0};
    const PathFunction force =
        multiply(force_function(s.d, c, path, s.arena), &moment, nullptr, 1, s.arena);
    add_path_function(m, s.d, force, weights[0], form.forms().late, s.arena);
  }
}

// A type of sensor, with its function and the reason why a sensor is not supported.
struct CurvedSensor {
  int type;
  void (*add)(Sensing& s, int sensor, const double* weights, SensorForm& form);
  const char* (*refusal)(const ModelView& m, int sensor) = nullptr;  // null: supported
};

constexpr CurvedSensor kCurvedSensors[] = {
    {sensor::kClock, add_nothing},
    {sensor::kInsideSite, add_nothing},
    {sensor::kJointPos, add_nothing},
    {sensor::kJointVel, add_nothing},
    {sensor::kBallAngVel, add_nothing},
    {sensor::kBallQuat, add_ball},
    {sensor::kJointLimitPos, add_limit_curvature},
    {sensor::kJointLimitVel, add_limit_curvature},
    {sensor::kJointLimitFrc, add_limit_curvature},
    {sensor::kTendonPos, add_tendon},
    {sensor::kTendonVel, add_tendon},
    {sensor::kTendonLimitPos, add_limit_curvature},
    {sensor::kTendonLimitVel, add_limit_curvature},
    {sensor::kTendonLimitFrc, add_limit_curvature},
    {sensor::kActuatorPos, add_transmission, actuator_refusal_of},
    {sensor::kActuatorVel, add_transmission, actuator_refusal_of},
    {sensor::kActuatorFrc, add_actuator, actuator_refusal_of},
    {sensor::kJointActFrc, add_joint_actuators, pulled_refusal},
    {sensor::kTendonActFrc, add_actuator, pulled_refusal},
    {sensor::kFramePos, add_frame_curvature, frame_refusal},
    {sensor::kFrameQuat, add_frame_curvature, frame_refusal},
    {sensor::kFrameXAxis, add_frame_curvature, frame_refusal},
    {sensor::kFrameYAxis, add_frame_curvature, frame_refusal},
    {sensor::kFrameZAxis, add_frame_curvature, frame_refusal},
    {sensor::kFrameLinVel, add_frame_curvature, frame_refusal},
    {sensor::kFrameAngVel, add_frame_curvature, frame_refusal},
    {sensor::kFrameLinAcc, add_frame_curvature, frame_refusal},
    {sensor::kFrameAngAcc, add_frame_curvature, frame_refusal},
    {sensor::kCamProjection, add_frame_curvature, frame_refusal},
    {sensor::kGyro, add_frame_curvature},
    {sensor::kVelocimeter, add_frame_curvature},
    {sensor::kAccelerometer, add_frame_curvature},
    {sensor::kMagnetometer, add_frame_curvature},
    {sensor::kSubtreeCom, add_subtree_curvature},
    {sensor::kSubtreeLinVel, add_subtree_curvature},
    {sensor::kSubtreeAngMom, add_subtree_curvature},
    {sensor::kPotential, add_energy_curvature},
    {sensor::kKinetic, add_energy_curvature},
    {sensor::kTouch, add_touch_curvature},
    {sensor::kContact, add_contact_curvature, contact_curvature_refusal},
    {sensor::kGeomDist, add_distance_curvature},
    {sensor::kGeomNormal, add_distance_curvature},
    {sensor::kGeomFromTo, add_distance_curvature},
    {sensor::kRangefinder, add_ray_curvature, frame_refusal},
    {sensor::kForce, add_wrench_curvature},
    {sensor::kTorque, add_wrench_curvature},
};

// Returns the row of a sensor's type, null if there is none.
const CurvedSensor* find_type(const ModelView& m, int sensor) {
  for (const CurvedSensor& row : kCurvedSensors) {
    if (row.type == m.sensor_type[sensor]) return &row;
  }
  return nullptr;
}

}  // namespace

void add_path_value(Sensing& s, const CurvedPath& path, bool rate, double weight,
                    SensorForm& form) {
  if (!is_curved(path.source)) return;
  constexpr auto q = DofVariable::kPosition, v = DofVariable::kVelocity;
  const Path& p = path.path;
  const PathBend bend = bend_path(s.m, s.d, path.source, s.d.qvel, s.arena);
  const double* second = rate ? bend.moment : bend.length;
  for (int a = 0; a < p.n; a++)
    for (int b = 0; b < p.n; b++) {
      const int i = p.dofs[a], k = p.dofs[b];
      if (second && b <= a) form.add({q, i}, {q, k}, weight * second[a * p.n + b]);
      if (rate && p.hessian) form.add({v, i}, {q, k}, weight * p.hessian[a * p.n + b]);
    }
}

const char* solution_refusal(const ModelView& m, int sensor) {
  const SensorType& type = sensor_type(m, sensor);
  if (type.reads == Reads::kState || (m.opt.disableflags & disable::kConstraint)) return nullptr;
  if (m.opt.noslip_iterations > 0) {
    return "second derivatives of sensors of accelerations and constraint forces are not supported "
           "with "
           "noslip";
  }
  const bool reads_force =
      type.reads == Reads::kConstraintForce || type.parameters == Dependence::kWrench;
  if (reads_force && (m.opt.enableflags & enable::kDiagExact)) {
    return "second derivatives of sensors of constraint forces are not supported with diagexact";
  }
  return nullptr;
}

bool has_cotangent(const ModelView& m, int sensor, const double* sensors) {
  for (int k = m.sensor_adr[sensor]; k < m.sensor_adr[sensor] + m.sensor_dim[sensor]; k++) {
    if (sensors[k] != 0) return true;
  }
  return false;
}

const unsigned char* weighted_sensors(const ModelView& m, const double* sensors, Arena& arena) {
  if (!sensors) return nullptr;
  unsigned char* weighted = arena.take<unsigned char>(m.nsensor);
  bool any = false;
  for (int s = 0; s < m.nsensor; s++) any |= weighted[s] = has_cotangent(m, s, sensors);
  return any ? weighted : nullptr;
}

const char* sensor_curvature_refusal(const ModelView& m, int sensor) {
  const CurvedSensor* row = find_type(m, sensor);
  if (!row) return kMissing;
  if (const char* reason = sensor_refusal(m, sensor)) return reason;
  return row->refusal ? row->refusal(m, sensor) : nullptr;
}

void add_sensor_curvatures(const ModelView& m, const DataView& d, const StepDifferential& s,
                           const double* sensors, const StepForms& forms,
                           double* through_acceleration, const CrossTerm*& cross,
                           const SlidingRows*& sliding, Arena& arena) {
  Sensing sensing(m, d, s.forward, {0, nullptr}, arena);
  SensorForm form(m, forms, through_acceleration, cross, sliding, arena);
  for (int k = 0; k < m.nsensor; k++) {
    if (!has_cotangent(m, k, sensors) || is_held(m, d, k)) continue;
    const char* refusal = s.forward.blocks.count ? solution_refusal(m, k) : nullptr;
    if (refusal) throw Unsupported(element_name(m, object::kSensor, k), refusal);
    const double* given = sensors + m.sensor_adr[k];
    double* weights = arena.take<double>(m.sensor_dim[k]);
    for (int r = 0; r < m.sensor_dim[k]; r++) weights[r] = is_cut_off(m, d, k, r) ? 0 : given[r];
    find_type(m, k)->add(sensing, k, weights, form);
  }
}

}  // namespace mujacobian

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

constexpr const char* kMissing = "second derivatives of this type of sensor";
constexpr const char* kMovingCamera = "second derivatives of a camera that follows a body";

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
  if (!tendon && m.jnt_actgravcomp[id]) return "second derivatives of gravity compensation";
  for (int a = 0; a < m.nactuator && !tendon; a++) {
    const char* reason = transmission_curvature_refusal(m, a);
    if (reason && !actuator_disabled(m, a)) return reason;
  }
  return nullptr;
}

const char* limit_refusal(const ModelView& m, int s) {
  return m.jnt_type[m.sensor_objid[s]] == joint::kBall
             ? "second derivatives of the limit of a ball joint"
             : nullptr;
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

// Adds the second derivative of the length or the rate of a path, weighted. If nothing pulls the
// path, its dofs may belong to several components.
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

// Length and rate of a tendon
void add_tendon(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const int tendon = s.m.sensor_objid[sensor];
  const CurvedPath path{s.tendon(tendon), tendon_source(s.m, tendon)};
  add_path_value(s, path, s.m.sensor_type[sensor] == sensor::kTendonVel, weights[0], form);
}

// The distance of a tendon to its active limit, and the rate of this distance
void add_tendon_limit(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const int tendon = s.m.sensor_objid[sensor];
  for (int k = 0; k < s.f.blocks.count; k++) {
    const Block& b = s.f.blocks.block[k];
    if (b.type != constraint::kLimitTendon || b.id != tendon) continue;
    const CurvedPath path{b.path[0], tendon_source(s.m, tendon)};
    const double weight = tendon_row_sign(s.m, s.d, b) * weights[0];
    return add_path_value(s, path, s.m.sensor_type[sensor] == sensor::kTendonLimitVel, weight,
                          form);
  }
}

// Length and rate of an actuator
void add_transmission(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const int id = s.m.sensor_objid[sensor];
  const PathCurvature c = length_curvature(s.m, s.d, id, s.arena);
  const bool rate = s.m.sensor_type[sensor] == sensor::kActuatorVel;
  add_path_value(s, {c.of->path, c.source}, rate, path_gear(s.m, id) * weights[0], form);
}

// Forces of actuators                                                                    (HSE-10)
void add_actuator(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const ModelView& m = s.m;
  const Actuation& actuation = s.f.paths.actuation;
  const int type = m.sensor_type[sensor], id = m.sensor_objid[sensor];
  const bool on_joint = type == sensor::kJointActFrc;
  if (on_joint && actuation.frozen && actuation.frozen[m.jnt_dofadr[id]]) return;
  double* along = s.arena.zeros<double>(m.nv);
  if (on_joint) along[m.jnt_dofadr[id]] = 1;
  const ActuatorCurvatures& all = s.actuator_curvatures();
  for (int k = 0; k < all.count; k++) {
    const PathCurvature& c = all.curvature[k];
    const int a = actuation.weights[c.of - actuation.forces].actuator;
    const CurvedPath path{c.of->path, c.source};
    PathFunction force = force_function(s.d, c, path, s.arena);
    double weight = weights[0];
    if (on_joint) {
      const PathScalar moment{PathScalar::kVirtual, &path, along, nullptr, 0};
      force = multiply(force, &moment, nullptr, 1, s.arena);
    } else if (type == sensor::kActuatorFrc ? a == id : pulls_tendon(m, a, id)) {
      const double gear = path_gear(m, a);
      if (gear == 0) {
        throw Unsupported(element_name(m, object::kSensor, sensor),
                          "second derivatives of the force of an actuator without gear");
      }
      weight /= gear;
    } else {
      continue;
    }
    add_path_function(m, s.d, force, weight, form.forms().late, s.arena);
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
    {sensor::kJointLimitPos, add_nothing, limit_refusal},
    {sensor::kJointLimitVel, add_nothing, limit_refusal},
    {sensor::kTendonPos, add_tendon},
    {sensor::kTendonVel, add_tendon},
    {sensor::kTendonLimitPos, add_tendon_limit},
    {sensor::kTendonLimitVel, add_tendon_limit},
    {sensor::kActuatorPos, add_transmission, actuator_refusal_of},
    {sensor::kActuatorVel, add_transmission, actuator_refusal_of},
    {sensor::kActuatorFrc, add_actuator, actuator_refusal_of},
    {sensor::kJointActFrc, add_actuator, pulled_refusal},
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
    {sensor::kGyro, add_frame_curvature},
    {sensor::kVelocimeter, add_frame_curvature},
    {sensor::kAccelerometer, add_frame_curvature},
    {sensor::kMagnetometer, add_frame_curvature},
    {sensor::kSubtreeCom, add_subtree_curvature},
    {sensor::kSubtreeLinVel, add_subtree_curvature},
    {sensor::kSubtreeAngMom, add_subtree_curvature},
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
                           double* through_acceleration, const CrossTerm*& cross, Arena& arena) {
  Sensing sensing(m, d, s.forward, {0, nullptr}, arena);
  SensorForm form(m, forms, through_acceleration, cross, arena);
  for (int k = 0; k < m.nsensor; k++) {
    if (!has_cotangent(m, k, sensors) || is_held(m, d, k)) continue;
    const double* given = sensors + m.sensor_adr[k];
    double* weights = arena.take<double>(m.sensor_dim[k]);
    for (int r = 0; r < m.sensor_dim[k]; r++) weights[r] = is_cut_off(m, d, k, r) ? 0 : given[r];
    find_type(m, k)->add(sensing, k, weights, form);
  }
}

}  // namespace mujacobian

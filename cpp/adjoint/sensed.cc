// Derivatives of sensors with respect to parameters at fixed state. A parameter changes the
// acceleration as the force -dg/dp does, and some sensors depend on it directly.         (PAR-16)
#include "adjoint/column.h"
#include "adjoint/frame.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "sensor/sensor.h"
#include "sensor/type.h"
#include "sensor/virtual_motion.h"

namespace mujacobian {
namespace {

// Whether a parameter changes a sensor other than through the state.
enum class Effect { kNone, kCovered, kUnsupported };

// Returns whether the sensor's object, or the frame that it is relative to, is the inertial frame
// of the body.
bool reads_inertial_frame(const ModelView& m, int sensor, int body) {
  return (m.sensor_objtype[sensor] == object::kBody && m.sensor_objid[sensor] == body) ||
         (m.sensor_reftype[sensor] == object::kBody && m.sensor_refid[sensor] == body);
}

// Returns whether the sensor's object, or the frame that it is relative to, is a camera that
// follows a center of mass.
bool reads_followed_mass(const ModelView& m, int sensor) {
  auto follows = [&](int type, int id) {
    return type == object::kCamera &&
           (m.cam_mode[id] == camera::kTrackCom || m.cam_mode[id] == camera::kTargetBodyCom);
  };
  return follows(m.sensor_objtype[sensor], m.sensor_objid[sensor]) ||
         follows(m.sensor_reftype[sensor], m.sensor_refid[sensor]);
}

bool has_spatial_tendon(const ModelView& m) {
  for (int t = 0; t < m.ntendon; t++) {
    if (!tendon_is_fixed(m, t)) return true;
  }
  return false;
}

// Returns the effect of a parameter on a sensor at fixed state, by the sensor's row in the table of
// types.
Effect effect(const ModelView& m, int sensor, const Parameter& p) {
  const SensorType& type = sensor_type(m, sensor);
  const Family family = family_of(p);
  const bool inertia = family == Family::kInertia, gravity = family == Family::kGravity;
  const bool geom = family == Family::kGeom, contact = family == Family::kContact;
  const bool spring = family == Family::kSpring, actuator = family == Family::kActuator;
  const bool own_limit = family == Family::kLimit && m.sensor_objid[sensor] == p.id;
  const bool tendon = kind_of(p).element == object::kTendon && !is_constant(p);
  // the discrete integrator corrects the forces of rows by the diagonal of its metric
  const bool corrected =
      has_metric(m) && !gravity && p.kind != Parameter::kFrictionLoss && !is_constant(p);
  auto unsupported_if = [](bool depends, Effect otherwise) {
    return depends ? Effect::kUnsupported : otherwise;
  };

  // frames of bodies and joints change every sensor, inertial frames only sensors that read them
  if (family == Family::kFrame) return Effect::kCovered;
  if (type.flags & SensorType::kReadsFrame) {
    const bool moves = family == Family::kInertialFrame && reads_inertial_frame(m, sensor, p.id);
    if (moves || (inertia && reads_followed_mass(m, sensor))) return Effect::kUnsupported;
  }
  if (family == Family::kInertialFrame) return Effect::kNone;

  switch (type.parameters) {
    case Dependence::kNone:
      return Effect::kNone;
    case Dependence::kLimitPosition:
      return unsupported_if(own_limit && p.kind == Parameter::kLimit, Effect::kNone);
    case Dependence::kGeometry:
      return unsupported_if(geom, Effect::kNone);
    case Dependence::kActuatorForce:
      return actuator ? Effect::kCovered : Effect::kNone;
    case Dependence::kLinearAcceleration:
    case Dependence::kAngularAcceleration:
      return unsupported_if(geom, Effect::kCovered);
    case Dependence::kJointLimitForce:
      return unsupported_if(geom || contact || own_limit || corrected, Effect::kCovered);
    case Dependence::kConstraintForce:
      return unsupported_if(geom || contact || corrected, Effect::kCovered);
    case Dependence::kWrench:
      return unsupported_if(geom || contact || corrected || p.kind == Parameter::kTendonLength ||
                                ((actuator || tendon) && has_spatial_tendon(m)),
                            Effect::kCovered);
    case Dependence::kSubtree:
      return unsupported_if(geom || inertia, Effect::kNone);
    case Dependence::kPotential:
      return unsupported_if(inertia || gravity || spring || tendon, Effect::kNone);
    case Dependence::kKinetic:
      return unsupported_if(inertia || family == Family::kArmature, Effect::kNone);
    case Dependence::kUnsupported:
      break;
  }
  return Effect::kUnsupported;
}

// Derivatives of sensors with respect to parameters at fixed state and acceleration.
class DirectDerivative {
 public:
  DirectDerivative(const ModelView& m, const DataView& d, const ForwardDynamics& f, Arena& arena)
      : m_(m), d_(d), f_(f), arena_(arena) {}

  // Writes the derivatives of the values of one sensor. `out` is zero on entry.
  void write(int sensor, const Parameter& p, double out[3]) {
    switch (sensor_type(m_, sensor).parameters) {
      case Dependence::kLinearAcceleration:
        if (family_of(p) == Family::kGravity) write_fall(sensor, p.component, out);
        return;
      case Dependence::kWrench:
        return write_wrench(sensor, p, out);
      case Dependence::kActuatorForce:
        if (family_of(p) == Family::kActuator) write_actuator(sensor, p, out);
        return;
      case Dependence::kUnsupported:
      case Dependence::kNone:
      case Dependence::kLimitPosition:
      case Dependence::kGeometry:
      case Dependence::kAngularAcceleration:
      case Dependence::kJointLimitForce:
      case Dependence::kConstraintForce:
      case Dependence::kSubtree:
      case Dependence::kPotential:
      case Dependence::kKinetic:
        return;
    }
  }

 private:
  bool weightless() const { return m_.opt.disableflags & disable::kGravity; }

  // The world accelerates by minus gravity.
  void write_fall(int sensor, int component, double out[3]) const {
    if (weightless() || is_at_rest(m_, sensor)) return;
    Vec3 fall = -unit3(component);
    if (m_.sensor_type[sensor] == sensor::kAccelerometer) {
      fall = transpose_mul(load9(d_.site_xmat + 9 * m_.sensor_objid[sensor]), fall);
    }
    store3(out, fall);
  }

  // The force sensor measures the inertial force and the weight of everything under its site.
  void write_wrench(int sensor, const Parameter& p, double out[3]) {
    const VirtualMotions z = virtual_motions(m_, d_, sensor);
    Force force{};
    if (family_of(p) == Family::kInertia && z.holds(m_, p.id)) {
      force = inertial_force(m_, d_, p.id, p.component, acceleration()[p.id]);
    } else if (p.kind == Parameter::kAnchor && z.holds(m_, m_.eq_obj2id[p.id])) {
      force = anchor_torque(p);
    } else if (family_of(p) == Family::kGravity && !weightless()) {
      force = Inertia{d_.crb + 10 * z.body} * Motion{{0, 0, 0}, -unit3(p.component)};
    }
    for (int k = 0; k < 3; k++) out[k] = dot(z.axis[k], force);
  }

  // Returns the torque of a connect that pulls at another point of its second body, by minus its
  // force.
  Force anchor_torque(const Parameter& p) const {
    for (int k = 0; k < f_.blocks.count; k++) {
      const Block& b = f_.blocks.block[k];
      if (b.type != constraint::kEquality || b.id != p.id) continue;
      return {cross(anchor_motion(m_, d_, p), load3(b.force)), {0, 0, 0}};
    }
    return {};
  }

  // The force of an actuator changes the sensors of the actuator, its tendon and its joint.
  void write_actuator(int sensor, const Parameter& p, double out[3]) {
    if (actuators_.count < 0) actuators_ = actuator_forces(m_, d_, arena_);
    const ActuatorChange change = actuator_change(m_, d_, actuators_, p);
    if (change.index < 0) return;
    const int id = m_.sensor_objid[sensor], type = m_.sensor_type[sensor];
    if (type == sensor::kActuatorFrc && id == p.id) out[0] = change.force.v;
    if (type == sensor::kTendonActFrc && pulls_tendon(m_, p.id, id)) out[0] = change.force.v;
    if (type != sensor::kJointActFrc) return;
    const Path& path = actuators_.force[change.index].unlimited.path;
    const unsigned char* frozen = f_.paths.actuation.frozen;
    const int dof = m_.jnt_dofadr[id];
    for (int k = 0; k < path.n && !(frozen && frozen[dof]); k++) {
      if (path.dofs[k] == dof) out[0] += path.moment[k] * path_gear(m_, p.id) * change.force.v;
    }
  }

  const Motion* acceleration() {
    if (!acceleration_) {
      acceleration_ = sweep_motion(m_, d_, f_.acc, base_acceleration(m_), arena_).acceleration;
    }
    return acceleration_;
  }

  const ModelView& m_;
  const DataView& d_;
  const ForwardDynamics& f_;
  Arena& arena_;
  ActuatorForces actuators_{nullptr, -1};
  const Motion* acceleration_ = nullptr;
};

// The derived constants among the parameters, and their direct effect on the forces of all blocks.
struct Constants {
  int* parameter;
  DirectForces forces;
};
Constants constants_among(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                          const ParameterList& params, Arena& arena) {
  const Blocks& blocks = f.blocks;
  Constants w{arena.take<int>(params.count), {0, nullptr}};
  for (int k = 0; k < params.count; k++) {
    if (is_constant(params.item[k])) w.parameter[w.forces.count++] = k;
  }
  const int count = w.forces.count;
  if (count == 0) return w;
  const BlockMotion motion = block_motion(m, d, blocks, f.solved, arena);
  double* change = arena.take<double>(static_cast<std::size_t>(blocks.count) * count * kMaxRows);
  for (int b = 0; b < blocks.count; b++) {
    for (int k = 0; k < count; k++) {
      constant_change(m, d, blocks.block[b], params.item[w.parameter[k]], motion,
                      change + (static_cast<std::size_t>(b) * count + k) * kMaxRows, arena);
    }
  }
  w.forces.change = change;
  return w;
}

// Returns d(acc) of all parameters, (count, nv): K^-1 times their early columns. `solved` contains
// K^-1 in its columns of applied force.
const double* accelerate(const ModelView& m, const ForwardDynamics& solved,
                         const ParameterColumns& columns, Arena& arena) {
  const DofRows& r = solved.residual;
  double* driven = arena.zeros<double>(static_cast<std::size_t>(columns.count) * m.nv);
  for (int k = 0; k < columns.count; k++) {
    for (int i = 0; i < m.nv; i++) {
      const Component& part = r.components[r.component[i]];
      const double* inverse = r.row[i] + part.force_column();
      for (int j = 0; j < part.nv; j++) {
        driven[k * m.nv + i] += inverse[j] * columns.early[k * m.nv + part.dofs[j]];
      }
    }
  }
  return driven;
}

}  // namespace

bool sensors_depend(const ModelView& m, const ParameterList& params, const double* weights) {
  bool any = false;
  for (int s = 0; s < m.nsensor; s++) {
    bool wanted = !weights;
    for (int r = 0; weights && r < m.sensor_dim[s]; r++) {
      wanted |= weights[m.sensor_adr[s] + r] != 0;
    }
    for (int k = 0; wanted && k < params.count; k++) {
      const Effect found = has_history(m, s) ? Effect::kUnsupported : effect(m, s, params.item[k]);
      any |= found == Effect::kCovered;
      if (found != Effect::kUnsupported) continue;
      throw Unsupported(element_name(m, object::kSensor, s),
                        "its derivative with respect to parameters is supported only through the "
                        "state");
    }
  }
  return any;
}

const double* sensed_parameters(const ModelView& m, const DataView& d, const ParameterList& params,
                                Arena& arena) {
  // differentiate the forward dynamics with respect to the parameters
  ForwardDynamics f = evaluate_forward(m, d, /*forces=*/true, arena);
  const StepDifferential s = at_acceleration(m, f, arena);
  Frames frames(m, d, params, arena);
  const ParameterColumns columns = parameter_columns(m, d, s, params, arena);

  // solve for d(acc) with respect to applied forces, and from it with respect to the parameters
  fill_residual(m, d, f, f.solved, arena);
  for (int c = 0; c < f.residual.count; c++) {
    const Component& part = f.residual.components[c];
    solve_acceleration(m, d, f, c, part.force_column(), part.end_column(), arena);
  }
  const double* driven = accelerate(m, f, columns, arena);

  // differentiate the sensors with respect to applied forces (Df) and to direct changes of
  // constraint forces, which derived constants cause
  const int ns = m.nsensordata;
  double* Df = arena.take<double>(static_cast<std::size_t>(ns) * m.nv);
  double* rows = arena.zeros<double>(static_cast<std::size_t>(ns) * params.count);
  const Constants constants = constants_among(m, d, f, params, arena);
  double* direct_rows = arena.take<double>(static_cast<std::size_t>(ns) * constants.forces.count);
  sense(m, d, f, {nullptr, nullptr, Df, nullptr, constants.forces, direct_rows}, arena);
  for (int r = 0; r < ns; r++) {
    for (int k = 0; k < constants.forces.count; k++) {
      rows[r * params.count + constants.parameter[k]] +=
          direct_rows[r * constants.forces.count + k];
    }
  }

  // through the acceleration: a parameter acts as the applied force in its early column
  for (int r = 0; r < ns; r++) {
    for (int k = 0; k < params.count; k++) {
      if (family_of(params.item[k]) == Family::kFrame) continue;
      for (int i = 0; i < m.nv; i++) {
        rows[r * params.count + k] += Df[r * m.nv + i] * columns.early[k * m.nv + i];
      }
    }
  }

  // directly, at fixed acceleration
  DirectDerivative direct(m, d, f, arena);
  for (int sensor = 0; sensor < m.nsensor; sensor++) {
    for (int k = 0; k < params.count; k++) {
      if (family_of(params.item[k]) == Family::kFrame) continue;
      double change[3] = {};
      direct.write(sensor, params.item[k], change);
      for (int r = 0; r < m.sensor_dim[sensor] && r < 3; r++) {
        if (is_cut_off(m, d, sensor, r)) continue;
        rows[(m.sensor_adr[sensor] + r) * params.count + k] += change[r];
      }
    }
  }

  // frames: on the model that is extended by virtual dofs
  frames.differentiate(s);
  frames.sense(driven, rows);
  return rows;
}

}  // namespace mujacobian

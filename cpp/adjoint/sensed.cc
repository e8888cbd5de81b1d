// What sensors see of parameters while the state is held: through the acceleration, on which a
// parameter acts as the force -dg/dp does, and directly.                                 (PAR-16)
#include "adjoint/column.h"
#include "adjoint/frame.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "sensor/sensor.h"
#include "sensor/virtual_motion.h"

namespace mujacobian {
namespace {

// How a sensor sees a parameter other than through the state.
enum class Sight { kNone, kCovered, kRefused };

bool is_law(int kind) {
  return kind == Parameter::kGain || kind == Parameter::kBias || kind == Parameter::kActuatorWeight;
}

bool is_frame_sensor(const ModelView& m, int sensor) {
  switch (m.sensor_type[sensor]) {
    case sensor::kCamProjection:
    case sensor::kFramePos:
    case sensor::kFrameQuat:
    case sensor::kFrameXAxis:
    case sensor::kFrameYAxis:
    case sensor::kFrameZAxis:
    case sensor::kFrameLinVel:
    case sensor::kFrameAngVel:
    case sensor::kFrameLinAcc:
    case sensor::kFrameAngAcc:
      return true;
    default:
      return false;
  }
}

// The sensor's object or the frame that it is relative to is the inertial frame of the body.
bool reads_inertial_frame(const ModelView& m, int sensor, int body) {
  return (m.sensor_objtype[sensor] == object::kBody && m.sensor_objid[sensor] == body) ||
         (m.sensor_reftype[sensor] == object::kBody && m.sensor_refid[sensor] == body);
}

// The sensor's object or the frame that it is relative to is a camera that follows a center of
// mass.
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

Sight sight(const ModelView& m, int sensor, const Parameter& p) {
  const bool geom = p.kind >= Parameter::kGeomPosition;
  const bool row = p.kind >= Parameter::kFriction && p.kind <= Parameter::kSolimp;
  const bool own = m.sensor_objid[sensor] == p.id;
  const bool bound = own && p.kind == Parameter::kLimit;
  const bool limit = bound || (own && p.kind == Parameter::kLimitSolref);
  const bool inertial = p.kind == Parameter::kInertial, weight = p.kind == Parameter::kGravity;
  const bool law = is_law(p.kind);
  const bool tendon =
      p.kind >= Parameter::kTendonStiffness && p.kind <= Parameter::kTendonFrictionLoss;
  // the discrete integrator corrects the forces of rows by the diagonal of its metric
  const bool corrected =
      has_metric(m) && !weight && p.kind != Parameter::kFrictionLoss && !is_constant(p.kind);
  const bool spring = p.kind == Parameter::kStiffness || p.kind == Parameter::kSpringReference;
  auto refused_if = [](bool seen, Sight otherwise) { return seen ? Sight::kRefused : otherwise; };
  if (is_frame(p.kind)) return Sight::kCovered;
  if (is_frame_sensor(m, sensor)) {
    const bool moves = p.kind == Parameter::kInertialFrame && reads_inertial_frame(m, sensor, p.id);
    if (moves || (inertial && reads_followed_mass(m, sensor))) return Sight::kRefused;
  }
  if (p.kind == Parameter::kInertialFrame) return Sight::kNone;
  const bool path = p.kind == Parameter::kTendonLength;
  switch (m.sensor_type[sensor]) {
    case sensor::kJointPos:
    case sensor::kJointVel:
    case sensor::kTendonPos:
    case sensor::kTendonVel:
    case sensor::kActuatorPos:
    case sensor::kActuatorVel:
    case sensor::kBallQuat:
    case sensor::kBallAngVel:
    case sensor::kJointLimitVel:
    case sensor::kTendonLimitPos:
    case sensor::kTendonLimitVel:
    case sensor::kClock:
      return Sight::kNone;
    case sensor::kJointLimitPos:
      return refused_if(bound, Sight::kNone);
    case sensor::kVelocimeter:
    case sensor::kGyro:
    case sensor::kMagnetometer:
    case sensor::kRangefinder:
    case sensor::kCamProjection:
    case sensor::kFramePos:
    case sensor::kFrameQuat:
    case sensor::kFrameXAxis:
    case sensor::kFrameYAxis:
    case sensor::kFrameZAxis:
    case sensor::kFrameLinVel:
    case sensor::kFrameAngVel:
    case sensor::kGeomDist:
    case sensor::kGeomNormal:
    case sensor::kGeomFromTo:
    case sensor::kInsideSite:
      return refused_if(geom, Sight::kNone);
    case sensor::kActuatorFrc:
    case sensor::kJointActFrc:
    case sensor::kTendonActFrc:
      return law ? Sight::kCovered : Sight::kNone;
    case sensor::kAccelerometer:
    case sensor::kFrameLinAcc:
    case sensor::kFrameAngAcc:
      return refused_if(geom, Sight::kCovered);
    case sensor::kJointLimitFrc:
      return refused_if(geom || row || limit || corrected, Sight::kCovered);
    case sensor::kTouch:
    case sensor::kContact:
    case sensor::kTendonLimitFrc:
      return refused_if(geom || row || corrected, Sight::kCovered);
    case sensor::kForce:
    case sensor::kTorque:
      return refused_if(
          geom || row || corrected || path || ((law || tendon) && has_spatial_tendon(m)),
          Sight::kCovered);
    case sensor::kSubtreeCom:
    case sensor::kSubtreeLinVel:
    case sensor::kSubtreeAngMom:
      return refused_if(geom || inertial, Sight::kNone);
    case sensor::kPotential:
      return refused_if(inertial || weight || spring || tendon, Sight::kNone);
    case sensor::kKinetic:
      return refused_if(inertial || p.kind == Parameter::kArmature, Sight::kNone);
    default:
      return Sight::kRefused;
  }
}

// What sensors see of parameters directly, the acceleration being held.
class DirectSight {
 public:
  DirectSight(const ModelView& m, const DataView& d, const ForwardDynamics& f, Arena& arena)
      : m_(m), d_(d), f_(f), arena_(arena) {}

  // Of one sensor, by value.
  void add(int sensor, const Parameter& p, double out[3]) {
    switch (m_.sensor_type[sensor]) {
      case sensor::kAccelerometer:
      case sensor::kFrameLinAcc:
        if (p.kind == Parameter::kGravity) add_fall(sensor, p.component, out);
        return;
      case sensor::kForce:
      case sensor::kTorque:
        return add_wrench(sensor, p, out);
      case sensor::kActuatorFrc:
      case sensor::kJointActFrc:
      case sensor::kTendonActFrc:
        if (is_law(p.kind)) add_law(sensor, p, out);
        return;
    }
  }

 private:
  bool weightless() const { return m_.opt.disableflags & disable::kGravity; }

  // The world accelerates by minus gravity.
  void add_fall(int sensor, int component, double out[3]) const {
    if (weightless() || is_at_rest(m_, sensor)) return;
    Vec3 fall = -unit3(component);
    if (m_.sensor_type[sensor] == sensor::kAccelerometer) {
      fall = transpose_mul(load9(d_.site_xmat + 9 * m_.sensor_objid[sensor]), fall);
    }
    store3(out, fall);
  }

  // Inertia under the site's body, and its weight
  void add_wrench(int sensor, const Parameter& p, double out[3]) {
    const VirtualMotions z = virtual_motions(m_, d_, sensor);
    Force force{};
    if (p.kind == Parameter::kInertial && z.holds(m_, p.id)) {
      force = inertial_force(m_, d_, p.id, p.component, acceleration()[p.id]);
    } else if (p.kind == Parameter::kAnchor && z.holds(m_, m_.eq_obj2id[p.id])) {
      force = anchor_torque(p);
    } else if (p.kind == Parameter::kGravity && !weightless()) {
      force = Inertia{d_.crb + 10 * z.body} * Motion{{0, 0, 0}, -unit3(p.component)};
    }
    for (int k = 0; k < 3; k++) out[k] = dot(z.axis[k], force);
  }

  // A connect pulls at another point of its second body, by minus its force.
  Force anchor_torque(const Parameter& p) const {
    for (int k = 0; k < f_.blocks.count; k++) {
      const Block& b = f_.blocks.block[k];
      if (b.type != constraint::kEquality || b.id != p.id) continue;
      return {cross(anchor_motion(m_, d_, p), load3(b.force)), {0, 0, 0}};
    }
    return {};
  }

  void add_law(int sensor, const Parameter& p, double out[3]) {
    if (actuators_.count < 0) actuators_ = actuator_forces(m_, d_, arena_);
    const ActuatorChange change = actuator_change(m_, d_, actuators_, p);
    if (change.index < 0) return;
    const int id = m_.sensor_objid[sensor], type = m_.sensor_type[sensor];
    if (type == sensor::kActuatorFrc && id == p.id) out[0] = change.force;
    if (type == sensor::kTendonActFrc && pulls_tendon(m_, p.id, id)) out[0] = change.force;
    if (type != sensor::kJointActFrc) return;
    const Path& path = actuators_.force[change.index].unlimited.path;
    const unsigned char* frozen = f_.paths.actuation.frozen;
    const int dof = m_.jnt_dofadr[id];
    for (int k = 0; k < path.n && !(frozen && frozen[dof]); k++) {
      if (path.dofs[k] == dof) out[0] += path.moment[k] * path_gear(m_, p.id) * change.force;
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

// The derived constants among the parameters, and what they do to the forces of all blocks
// directly.
struct Constants {
  int* parameter;
  DirectForces forces;
};
Constants constants_among(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                          const ParameterList& params, Arena& arena) {
  const Blocks& blocks = f.blocks;
  Constants w{arena.take<int>(params.count), {0, nullptr}};
  for (int k = 0; k < params.count; k++) {
    if (is_constant(params.item[k].kind)) w.parameter[w.forces.count++] = k;
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

// Early columns and d(acc) of all parameters, (count, nv): `solved` has K^-1 in the columns of
// applied force.
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

bool sensors_see(const ModelView& m, const ParameterList& params, const double* weights) {
  bool any = false;
  for (int s = 0; s < m.nsensor; s++) {
    bool wanted = !weights;
    for (int r = 0; weights && r < m.sensor_dim[s]; r++) {
      wanted |= weights[m.sensor_adr[s] + r] != 0;
    }
    for (int k = 0; wanted && k < params.count; k++) {
      const Sight seen = sight(m, s, params.item[k]);
      any |= seen == Sight::kCovered;
      if (seen != Sight::kRefused) continue;
      throw Unsupported(element_name(m, object::kSensor, s),
                        "its derivative with respect to parameters, other than through the state");
    }
  }
  return any;
}

const double* sensed_parameters(const ModelView& m, const DataView& d, const ParameterList& params,
                                Arena& arena) {
  ForwardDynamics f = evaluate_forward(m, d, /*forces=*/true, arena);
  const StepDifferential s = at_acceleration(m, f, arena);
  Frames frames(m, d, params, arena);
  const ParameterColumns columns = parameter_columns(m, d, s, params, arena);
  fill_residual(m, d, f, f.solved, arena);
  for (int c = 0; c < f.residual.count; c++) {
    const Component& part = f.residual.components[c];
    solve_acceleration(m, d, f, c, part.force_column(), part.end_column(), arena);
  }
  const double* driven = accelerate(m, f, columns, arena);

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
  for (int r = 0; r < ns; r++) {
    for (int k = 0; k < params.count; k++) {
      if (is_frame(params.item[k].kind)) continue;
      for (int i = 0; i < m.nv; i++) {
        rows[r * params.count + k] += Df[r * m.nv + i] * columns.early[k * m.nv + i];
      }
    }
  }
  DirectSight direct(m, d, f, arena);
  for (int sensor = 0; sensor < m.nsensor; sensor++) {
    for (int k = 0; k < params.count; k++) {
      if (is_frame(params.item[k].kind)) continue;
      double change[3] = {};
      direct.add(sensor, params.item[k], change);
      for (int r = 0; r < m.sensor_dim[sensor] && r < 3; r++) {
        if (is_cut_off(m, d, sensor, r)) continue;
        rows[(m.sensor_adr[sensor] + r) * params.count + k] += change[r];
      }
    }
  }
  frames.differentiate(s);
  frames.sense(driven, rows);
  return rows;
}

}  // namespace mujacobian

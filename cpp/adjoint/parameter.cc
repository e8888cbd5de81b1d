#include "adjoint/parameter.h"

#include "adjoint/column.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "smooth/unsupported.h"

namespace mujacobian {
namespace {

bool is_of_contact(int kind) {
  return kind == Parameter::kFriction || kind == Parameter::kSolref || kind == Parameter::kSolimp;
}

bool is_row(int kind) {
  return is_of_contact(kind) || kind == Parameter::kFrictionLoss ||
         kind == Parameter::kTendonFrictionLoss;
}

bool is_frame(int kind) {
  return kind >= Parameter::kBodyPosition && kind <= Parameter::kJointAxis;
}

bool is_geom(int kind) { return kind >= Parameter::kGeomPosition; }

// Sensors that see parameters, frames among them, only through the state.
bool sees_state_only(int type, bool frames) {
  switch (type) {
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
      return !frames;
    case sensor::kJointPos:
    case sensor::kJointVel:
    case sensor::kTendonPos:
    case sensor::kTendonVel:
    case sensor::kActuatorPos:
    case sensor::kActuatorVel:
    case sensor::kBallQuat:
    case sensor::kBallAngVel:
    case sensor::kJointLimitPos:
    case sensor::kJointLimitVel:
    case sensor::kTendonLimitPos:
    case sensor::kTendonLimitVel:
    case sensor::kClock:
      return true;
  }
  return false;
}

void require_parameter(const ModelView& m, const Parameter& p) {
  const bool exact = m.opt.enableflags & enable::kDiagExact;
  switch (p.kind) {
    case Parameter::kInertial:
      if (m.opt.density > 0 || m.opt.viscosity > 0) {
        throw Unsupported(element_name(m, object::kBody, p.id),
                          "its inertia as a parameter in a fluid");
      }
      if (m.body_gravcomp[p.id] != 0) {
        throw Unsupported(element_name(m, object::kBody, p.id),
                          "its inertia as a parameter with gravity compensation");
      }
      [[fallthrough]];
    case Parameter::kArmature:
      if (!exact) return;
      throw Unsupported(p.kind == Parameter::kArmature ? "armature of a dof"
                                                       : element_name(m, object::kBody, p.id),
                        "inertia as a parameter with diagexact");
    case Parameter::kSpringReference:
      if (m.jnt_type[p.id] == joint::kHinge || m.jnt_type[p.id] == joint::kSlide) return;
      throw Unsupported(element_name(m, object::kJoint, p.id),
                        "the rest position as a parameter of a joint with several dofs");
    case Parameter::kGain:
    case Parameter::kBias:
      if (const char* reason = actuator_parameter_refusal(m, p)) {
        throw Unsupported(element_name(m, object::kActuator, p.id), reason);
      }
      return;
    case Parameter::kGeomRadius:
      if (m.geom_type[p.id] != geom::kSphere && m.geom_type[p.id] != geom::kCapsule) {
        throw Unsupported(element_name(m, object::kGeom, p.id), "its size as a parameter");
      }
      [[fallthrough]];
    default:
      if (!is_of_contact(p.kind) && !is_geom(p.kind) && !is_frame(p.kind)) return;
      if (!exact) return;
      throw Unsupported(element_name(m, object::kGeom, p.id), "a parameter with diagexact");
  }
}

}  // namespace

void require_parameters(const ModelView& m, const ParameterList& params) {
  if (params.count == 0) return;
  if (m.opt.integrator == integrator::kRK4 || m.opt.integrator == integrator::kDiscrete) {
    throw Unsupported(
        m.opt.integrator == integrator::kRK4 ? "integrator RK4" : "integrator discrete",
        "derivatives with respect to parameters");
  }
  if (m.opt.noslip_iterations > 0) {
    throw Unsupported("option noslip_iterations", "derivatives with respect to parameters");
  }
  for (int k = 0; k < params.count; k++) require_parameter(m, params.item[k]);
}

void require_state_sensors(const ModelView& m, const ParameterList& params, const double* weights) {
  bool frames = false;
  for (int k = 0; k < params.count; k++) frames |= is_frame(params.item[k].kind);
  for (int s = 0; params.count && s < m.nsensor; s++) {
    if (sees_state_only(m.sensor_type[s], frames)) continue;
    for (int k = 0; k < m.sensor_dim[s]; k++) {
      if (weights && weights[m.sensor_adr[s] + k] == 0) continue;
      throw Unsupported(element_name(m, object::kSensor, s),
                        "its derivative with respect to parameters, other than through the state");
    }
  }
}

ParameterColumns parameter_columns(const ModelView& m, const DataView& d, const StepDifferential& s,
                                   const ParameterList& params, Arena& arena) {
  if (params.count == 0) return {0, nullptr, nullptr};
  const std::size_t size = static_cast<std::size_t>(params.count) * m.nv;
  const ParameterColumns columns{params.count, arena.zeros<double>(size),
                                 arena.zeros<double>(size)};
  Passes passes{};
  for (int k = 0; k < params.count && !passes.early.acceleration; k++) {
    const int kind = params.item[k].kind;
    if (kind == Parameter::kInertial || is_frame(kind)) passes = make_passes(m, d, s, arena);
  }
  ForceColumns force(m, d, s, arena);
  for (int k = 0; k < params.count; k++) {
    const Parameter& p = params.item[k];
    const Column column{columns.early + k * m.nv, columns.late + k * m.nv};
    if (p.kind == Parameter::kInertial) {
      add_inertial(m, s, passes, p, column);
    } else if (p.kind == Parameter::kGravity) {
      add_gravity(m, d, p.component, column);
    } else if (p.kind == Parameter::kArmature) {
      add_armature(s, p.id, column);
    } else if (is_frame(p.kind)) {
      add_frame(m, d, s, passes, p, column, arena);
    } else if (is_geom(p.kind)) {
      add_geom(m, d, s, p, column, arena);
    } else if (is_row(p.kind)) {
      add_row_parameter(m, d, s, p, column);
    } else {
      force.add(p, column);
    }
  }
  return columns;
}

}  // namespace mujacobian

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

// Sensors that see parameters only through the state.
bool sees_state_only(int type) {
  switch (type) {
    case sensor::kVelocimeter:
    case sensor::kGyro:
    case sensor::kMagnetometer:
    case sensor::kRangefinder:
    case sensor::kCamProjection:
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
    case sensor::kFramePos:
    case sensor::kFrameQuat:
    case sensor::kFrameXAxis:
    case sensor::kFrameYAxis:
    case sensor::kFrameZAxis:
    case sensor::kFrameLinVel:
    case sensor::kFrameAngVel:
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
    default:
      if (!is_of_contact(p.kind) || !exact) return;
      throw Unsupported(element_name(m, object::kGeom, p.id), "a contact parameter with diagexact");
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

void require_state_sensors(const ModelView& m, const double* weights) {
  for (int s = 0; s < m.nsensor; s++) {
    if (sees_state_only(m.sensor_type[s])) continue;
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
  InertialColumns inertial(m, d, s, arena);
  ForceColumns force(m, d, s, arena);
  for (int k = 0; k < params.count; k++) {
    const Parameter& p = params.item[k];
    const Column column{columns.early + k * m.nv, columns.late + k * m.nv};
    if (p.kind <= Parameter::kArmature && p.kind != Parameter::kDamping) {
      inertial.add(p, column);
    } else if (is_of_contact(p.kind) || p.kind == Parameter::kFrictionLoss ||
               p.kind == Parameter::kTendonFrictionLoss) {
      add_row_parameter(m, d, s, p, column);
    } else {
      force.add(p, column);
    }
  }
  return columns;
}

}  // namespace mujacobian

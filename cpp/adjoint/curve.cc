#include "adjoint/curve.h"

#include <new>

#include "dynamics/metric.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "sensor/type.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// Returns whether a sensor depends on parameters only through the state and the acceleration, or
// not at all.
bool is_indirect(const ModelView& m, int sensor, const Parameter& p) {
  const Family family = family_of(p);
  switch (sensor_type(m, sensor).parameters) {
    case Dependence::kNone:
    case Dependence::kLimitPosition:
    case Dependence::kGeometry:
    case Dependence::kAngularAcceleration:
    case Dependence::kSubtree:
    case Dependence::kPotential:
    case Dependence::kKinetic:
      return true;  // `sensors_depend` refuses those that depend directly
    case Dependence::kLinearAcceleration:
      return family != Family::kGravity;
    case Dependence::kActuatorForce:
      return family != Family::kActuator;
    case Dependence::kJointLimitForce:
    case Dependence::kConstraintForce:
    case Dependence::kWrench:
    case Dependence::kUnsupported:
      break;
  }
  return false;
}

// Returns whether second derivatives with respect to a parameter are supported.
bool is_curved(const ModelView& m, const Parameter& p) {
  const Family family = family_of(p);
  if (!functions_of(family).curve || p.kind == Parameter::kActuatorWeight) return false;
  if (!has_metric(m)) return true;
  // the metric of the discrete integrator depends on all others; rows are inactive       (HVP-14)
  return family == Family::kInertia || family == Family::kArmature || family == Family::kGravity ||
         family == Family::kWeight || family == Family::kInertialFrame;
}

// Returns the name of the element that a parameter belongs to.
std::string parameter_name(const ModelView& m, const Parameter& p) {
  const ParameterKind& kind = kind_of(p);
  if (kind.element == object::kUnknown) return std::string("option ") + kind.name;
  const bool of_dof = p.kind == Parameter::kDamping || p.kind == Parameter::kArmature ||
                      p.kind == Parameter::kFrictionLoss || p.kind == Parameter::kDofWeight;
  return element_name(m, kind.element, of_dof ? m.dof_jntid[p.id] : p.id);
}

}  // namespace

ParameterSlopes slopes_at(const ModelView& m, const ParameterCurvature& all, int k) {
  const std::ptrdiff_t row = k;
  return {all.state + row * state_size(m), all.ctrl + row * m.nu, all.by_early + row * m.nv,
          all.by_late + row * m.nv};
}

const DataView& CurveContext::at(const DataView*& view, const double* mu) {
  if (!view) view = new (arena.take<DataView>(1)) DataView(at_velocity(m, d, mu, arena));
  return *view;
}

void ParameterPairs::add(int j, int k, double second) {
  if (second == 0) return;
  first_ = new (arena_.take<ParameterPair>(1)) ParameterPair{j, k, second, first_};
}

// The inertial frame of a body acts only on forces of xfrc_applied, which are refused, and
// `curve_rows` adds the slopes of contacts and limits.
void curve_nothing(CurveContext&, const Parameter&, const ParameterSlopes&) {}

ParameterCurvature curve_parameters(const ModelView& m, const DataView& d,
                                    const StepCurvature& curved, const ParameterList& params,
                                    Arena& arena) {
  const ParameterColumns columns = parameter_columns(m, d, curved.s, params, arena);
  const std::size_t count = params.count;
  ParameterCurvature all{columns.early,
                         columns.late,
                         arena.zeros<double>(count * state_size(m)),
                         arena.zeros<double>(count * m.nu),
                         arena.zeros<double>(count * m.nv),
                         arena.zeros<double>(count * m.nv),
                         nullptr};
  CurveContext x(m, d, curved, arena);
  for (int k = 0; k < params.count; k++) {
    const Parameter& p = params.item[k];
    functions_of(family_of(p)).curve(x, p, slopes_at(m, all, k));
  }
  ParameterPairs pairs(arena);
  couple_gravity(x, params, pairs);
  couple_springs(x, params, pairs);
  couple_tendons(x, params, pairs);
  couple_weights(x, params, pairs);
  curve_rows(x, params, all, pairs);
  all.pairs = pairs.first();
  return all;
}

CurvedParameters curved_parameters(const ParameterList& params, const double* along, double* first,
                                   double* second) {
  return {params.count,
          along,
          first,
          second,
          [params](const ModelView& m, const DataView& d, const StepCurvature& step, Arena& arena) {
            return curve_parameters(m, d, step, params, arena);
          },
          [params](const ModelView& m, const DataView& d, const StepDifferential& s, Arena& arena) {
            return parameter_columns(m, d, s, params, arena).early;
          }};
}

void require_curved(const ModelView& m, const ParameterList& params, const double* sensors) {
  require_parameters(m, params);
  for (int k = 0; k < params.count; k++) {
    const Parameter& p = params.item[k];
    if (is_curved(m, p)) continue;
    const char* where =
        has_metric(m) ? " are not supported with the discrete integrator" : " are not supported";
    throw Unsupported(parameter_name(m, p), std::string("second derivatives with respect to its ") +
                                                kind_of(p).name + where);
  }
  if (sensors) sensors_depend(m, params, sensors);
  for (int i = 0; sensors && i < m.nsensor; i++) {
    bool weighted = false;
    for (int r = 0; r < m.sensor_dim[i]; r++) weighted |= sensors[m.sensor_adr[i] + r] != 0;
    for (int k = 0; weighted && k < params.count; k++) {
      if (is_indirect(m, i, params.item[k])) continue;
      throw Unsupported(
          element_name(m, object::kSensor, i),
          "second derivatives with respect to parameters on which it depends directly are not "
          "supported");
    }
  }
}

}  // namespace mujacobian

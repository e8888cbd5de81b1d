#include "second_order/support.h"

#include "actuation/actuation.h"
#include "forces/fluid.h"
#include "forces/passive.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "second_order/row.h"
#include "second_order/sensor.h"
#include "sensor/sensor.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

constexpr const char* kMoving = "second derivatives of a moment arm that depends on the position";

bool tendon_acts(const ModelView& m, int t) {
  const double* spring = m.tendon_stiffnesspoly + kNPoly * t;
  const Poly stiffness{m.tendon_stiffness[t], {spring[0], spring[1]}};
  return (springs_enabled(m) && !stiffness.zero()) ||
         (dampers_enabled(m) && !tendon_damping(m, t).zero()) || tendon_armature(m, t) != 0;
}

// Calls report(element, reason) for the elements that have no second derivative in any state.
template <class F>
void visit_always(const ModelView& m, F report) {
  if (m.opt.integrator == integrator::kRK4) {
    report("option integrator=\"RK4\"", "second derivatives of this integrator");
  }
  if (m.opt.integrator == integrator::kDiscrete) {
    report("option integrator=\"discrete\"", "second derivatives of this integrator");
  }
  if (fluid_enabled(m)) report("option density or viscosity", "second derivatives of fluid forces");
  for (int t = 0; t < m.ntendon; t++) {
    if (!tendon_is_fixed(m, t) && tendon_acts(m, t)) {
      report(element_name(m, object::kTendon, t), kMoving);
    }
  }
  const bool actuated = !(m.opt.disableflags & disable::kActuation);
  for (int a = 0; actuated && a < m.nactuator; a++) {
    if (actuator_disabled(m, a)) continue;
    if (has_moving_moment(m, a)) report(element_name(m, object::kActuator, a), kMoving);
  }
}

// Returns whether two geoms of the model may collide.
bool may_collide(const ModelView& m) {
  if (m.npair > 0) return true;
  for (int i = 0; i < m.ngeom; i++)
    for (int j = 0; j < i; j++) {
      const bool match = (m.geom_contype[i] & m.geom_conaffinity[j]) ||
                         (m.geom_contype[j] & m.geom_conaffinity[i]);
      if (match && m.body_weldid[m.geom_bodyid[i]] != m.body_weldid[m.geom_bodyid[j]]) return true;
    }
  return false;
}

// Returns whether contacts, connects or welds of the model may act.
bool may_pull_bodies(const ModelView& m) {
  const int disabled = m.opt.disableflags;
  if (disabled & disable::kConstraint) return false;
  for (int e = 0; e < m.neq && !(disabled & disable::kEquality); e++) {
    if (m.eq_type[e] != equality::kJoint && m.eq_type[e] != equality::kTendon) return true;
  }
  return !(disabled & disable::kContact) && may_collide(m);
}

// Calls report(element, reason) for the constraints that have no second derivative while they act.
template <class F>
void visit_constraints(const ModelView& m, F report) {
  const int disabled = m.opt.disableflags;
  if (disabled & disable::kConstraint) return;
  for (int e = 0; e < m.neq && !(disabled & disable::kEquality); e++) {
    if (m.eq_type[e] != equality::kTendon) continue;
    const bool fixed = tendon_is_fixed(m, m.eq_obj1id[e]) &&
                       (m.eq_obj2id[e] < 0 || tendon_is_fixed(m, m.eq_obj2id[e]));
    if (!fixed) report(element_name(m, object::kEquality, e), kMoving);
  }
  for (int t = 0; t < m.ntendon; t++) {
    const bool limited = m.tendon_limited[t] && !(disabled & disable::kLimit);
    if (!tendon_is_fixed(m, t) && limited) report(element_name(m, object::kTendon, t), kMoving);
  }
}

}  // namespace

bool has_moving_moment(const ModelView& m, int actuator) {
  const int trn = m.actuator_trntype[actuator], id = m.actuator_trnid[2 * actuator];
  switch (trn) {
    case transmission::kJoint:
      return false;
    case transmission::kJointInParent:
      return m.jnt_type[id] == joint::kBall || m.jnt_type[id] == joint::kFree;
    case transmission::kTendon:
      return !tendon_is_fixed(m, id);
    default:
      return true;
  }
}

std::vector<Unsupported> list_second_order(const ModelView& m) {
  std::vector<Unsupported> all;
  auto add = [&](const std::string& element, const std::string& reason) {
    all.emplace_back(element, reason);
  };
  visit_always(m, add);
  visit_constraints(m, add);
  for (int s = 0; s < m.nsensor; s++) {
    const char* reason = sensor_refusal(m, s) ? nullptr : sensor_curvature_refusal(m, s);
    const int type = m.sensor_type[s];
    if (!reason && (type == sensor::kForce || type == sensor::kTorque) && may_pull_bodies(m)) {
      reason = "second derivatives of constraint forces on its subtree";
    }
    if (reason) {
      add(element_name(m, object::kSensor, s), reason);
    }
  }
  return all;
}

void require_second_order(const ModelView& m, const double* sensors) {
  visit_always(m, [](const std::string& element, const std::string& reason) {
    throw Unsupported(element, reason);
  });
  for (int s = 0; sensors && s < m.nsensor; s++) {
    if (!has_cotangent(m, s, sensors)) continue;
    if (const char* reason = sensor_curvature_refusal(m, s)) {
      throw Unsupported(element_name(m, object::kSensor, s), reason);
    }
  }
}

void require_second_order(const ModelView& m, const ForwardDynamics& forward) {
  for (int k = 0; k < forward.blocks.count; k++) {
    const Block& b = forward.blocks.block[k];
    if (!has_second_derivative(m, b)) {
      throw Unsupported(row_name(m, b), "second derivatives of its rows");
    }
    if (!b.active) continue;
    if (m.opt.enableflags & enable::kDiagExact) {
      throw Unsupported("flag diagexact", "second derivatives of the exact diagonal");
    }
    if (m.opt.noslip_iterations > 0) {
      throw Unsupported("option noslip_iterations", "second derivatives of the noslip solver");
    }
  }
  const Actuation& actuation = forward.paths.actuation;
  for (int k = 0; k < actuation.weight_count; k++) {
    if (!actuation.weights[k].scaled) continue;
    throw Unsupported(element_name(m, object::kActuator, actuation.weights[k].actuator),
                      "second derivatives of forces that the force range of a tendon scales");
  }
}

}  // namespace mujacobian

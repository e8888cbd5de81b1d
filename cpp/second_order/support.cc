#include "second_order/support.h"

#include "actuation/actuation.h"
#include "actuation/transmission_curvature.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "second_order/exact_diagonal.h"
#include "second_order/metric.h"
#include "second_order/noslip.h"
#include "second_order/sensor.h"
#include "sensor/sensor.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// Calls report(element, reason) for the elements that have no second derivative in any state.
template <class F>
void visit_always(const ModelView& m, F report) {
  const bool actuated = !(m.opt.disableflags & disable::kActuation);
  for (int a = 0; actuated && a < m.nactuator; a++) {
    if (actuator_disabled(m, a)) continue;
    const char* reason = transmission_curvature_refusal(m, a);
    if (reason) report(element_name(m, object::kActuator, a), reason);
  }
}

bool has_spatial_tendon(const ModelView& m) {
  for (int t = 0; t < m.ntendon; t++) {
    if (!tendon_is_fixed(m, t)) return true;
  }
  return false;
}

// Calls report(element, reason) for the options that lack second derivatives if a tree sleeps, or
// if a constraint acts.
template <class F>
void visit_options(const ModelView& m, F report) {
  if (m.opt.enableflags & enable::kSleep) {
    report("flag sleep", "second derivatives while a tree sleeps are not supported");
  }
  if (m.opt.disableflags & disable::kConstraint) return;
  const bool sweeps = m.opt.noslip_iterations > 0;
  if (m.opt.integrator == integrator::kDiscrete) {
    report("option integrator=\"discrete\"", kDiscreteRows);
  }
  if (sweeps && m.opt.integrator == integrator::kRK4) {
    report("option noslip_iterations", kSweptStages);
  }
  if (!(m.opt.enableflags & enable::kDiagExact)) return;
  if (sweeps) report("flag diagexact", kExactSweeps);
  if (m.flg_adhesion) report("flag diagexact", kExactAdhesion);
}

// Returns the reason why a sensor may lack second derivatives in some state, or null.
const char* state_refusal(const ModelView& m, int s) {
  const int type = m.sensor_type[s];
  if (const char* reason = solution_refusal(m, s)) return reason;
  const bool of_subtree = type == sensor::kForce || type == sensor::kTorque;
  return of_subtree && has_spatial_tendon(m) ? kTendonOfSubtree : nullptr;
}

}  // namespace

std::vector<Unsupported> list_second_order(const ModelView& m) {
  std::vector<Unsupported> all;
  auto add = [&](const std::string& element, const std::string& reason) {
    all.emplace_back(element, reason);
  };
  visit_always(m, add);
  visit_options(m, add);
  for (int s = 0; s < m.nsensor; s++) {
    if (sensor_refusal(m, s)) continue;
    const char* reason = sensor_curvature_refusal(m, s);
    if (!reason) reason = state_refusal(m, s);
    if (reason) {
      add(element_name(m, object::kSensor, s), reason);
    }
  }
  return all;
}

std::vector<Unsupported> list_parameter_options(const ModelView& m) {
  std::vector<Unsupported> all;
  const bool constrained = !(m.opt.disableflags & disable::kConstraint);
  if (constrained && m.opt.enableflags & enable::kDiagExact) {
    all.emplace_back("flag diagexact", kOptionOfParameters);
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

}  // namespace mujacobian

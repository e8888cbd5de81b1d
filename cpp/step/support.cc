#include "step/support.h"

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "actuation/actuation.h"
#include "forces/passive.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/sleep.h"
#include "layout/text.h"
#include "sensor/sensor.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

void require_finite(const char* name, const double* x, int n) {
  // without branches, so that compilers use vectors; the message is found afterward
  int strange = 0;
  for (int i = 0; i < n; i++) strange += !(std::abs(x[i]) <= kMaxVal);
  if (strange == 0) return;
  for (int i = 0; i < n; i++) {
    if (std::abs(x[i]) <= kMaxVal) continue;
    throw std::domain_error(std::string(name) + "[" + std::to_string(i) + "] is " + in_words(x[i]) +
                            ": MuJoCo takes numbers up to 1e10");
  }
}

void require_option(const char* name, const double* x, int n) {
  for (int i = 0; i < n; i++) {
    if (std::isfinite(x[i])) continue;
    throw std::domain_error(std::string("model.opt.") + name + " must be finite, got " +
                            in_words(x[i]));
  }
}

// Calls report(element, reason) for every element of the model that is not supported.
template <class F>
void visit_unsupported(const ModelView& m, KnownCallbacks known, F report) {
  // integrator
  switch (m.opt.integrator) {
    case integrator::kEuler:
    case integrator::kImplicit:
    case integrator::kImplicitFast:
      break;
    case integrator::kDiscrete:
      if (m.opt.enableflags & enable::kDiagExact) {
        report("flag diagexact", "the exact diagonal in the metric of the discrete integrator");
      }
      if (m.opt.noslip_iterations > 0) {
        report("option noslip_iterations", "the noslip solver with the discrete integrator");
      }
      if (m.opt.solver == solver::kPGS && (m.ntendon || m.nactuator)) {
        report("option solver=\"PGS\"",
               "PGS with tendons or actuators and the discrete integrator");
      }
      break;
    case integrator::kRK4:
      break;
    default:
      report("option integrator", "this version of mujacobian does not support this integrator");
  }

  // flags: a flag that is newer than this code may change anything
  constexpr int kIpc = 64, kSpeculative = 128, kKnown = 63;
  int flags = m.opt.enableflags & ~kKnown;
  if (flags & kIpc) report("flag ipc", "contacts are computed with barrier functions");
  if (flags & kSpeculative) report("flag speculative", "contacts depend on velocities");
  if (flags & ~(kIpc | kSpeculative))
    report("an enable flag", "this version of mujacobian does not support this flag");

  // callbacks, flexible bodies and plugins
  for (const Engine::Callback& callback : engine().callbacks) {
    const std::string_view name = callback.name;
    if ((known.control && name == "mjcb_control") || (known.passive && name == "mjcb_passive")) {
      continue;
    }
    if (*callback.address) report(callback.name, "a user callback takes part in the step");
  }
  for (int f = 0; f < m.nflex; f++) {
    // a rigid flex belongs to one body and only makes contacts, which are checked where they act
    if (!m.flex_rigid[f]) report(element_name(m, object::kFlex, f), "flexible bodies");
  }
  for (int p = 0; p < m.nplugin; p++) {
    // plugins of actuators, sensors and geoms are checked with these elements and with contacts
    const int checked = capability::kSensor | capability::kSdf |
                        (is_plugin(m, p, kPidPlugin) ? capability::kActuator : 0);
    if (plugin_capabilities(m, p) & ~checked) {
      report(element_name(m, object::kPlugin, p),
             std::string("the forces of the plugin ") + plugin_name(m, p));
    }
  }

  // tendons and actuators
  for (int t = 0; t < m.ntendon; t++) {
    if (tendon_wraps(m, t) && tendon_armature(m, t) != 0) {
      report(element_name(m, object::kTendon, t),
             "MuJoCo has no armature for tendons that wrap around a geom");
    }
  }
  bool actuated = !(m.opt.disableflags & disable::kActuation);
  for (int a = 0; actuated && a < m.nactuator; a++) {
    // the activations of a disabled actuator are still states, and plugins are not disabled
    const bool acts = m.actuator_actnum[a] > 0 || m.actuator_plugin[a] >= 0;
    if (actuator_disabled(m, a) && !acts) continue;
    if (const char* reason = actuator_refusal(m, a)) {
      report(element_name(m, object::kActuator, a), reason);
    }
  }
}

}  // namespace

std::vector<Unsupported> list_unsupported(const ModelView& m) {
  std::vector<Unsupported> all;
  auto add = [&](const std::string& element, const std::string& reason) {
    all.emplace_back(element, reason);
  };
  visit_unsupported(m, {}, add);
  for (int s = 0; s < m.nsensor; s++) {
    if (const char* reason = sensor_refusal(m, s)) {
      add(element_name(m, object::kSensor, s), reason);
    }
  }
  return all;
}

void require_model(const ModelView& m, KnownCallbacks known) {
  visit_unsupported(m, known, [](const std::string& element, const std::string& reason) {
    throw Unsupported(element, reason);
  });
}

void require_no_history(const ModelView& m, bool sensors, const unsigned char* wanted) {
  constexpr const char* kReason =
      "it is delayed, and neither planners nor identification contain its history";
  for (int a = 0; a < m.nactuator; a++) {
    if (m.actuator_delay[a] == 0) continue;
    throw Unsupported(element_name(m, object::kActuator, a), kReason);
  }
  for (int s = 0; sensors && s < m.nsensor; s++) {
    if ((wanted && !wanted[s]) || !has_history(m, s)) continue;
    throw Unsupported(element_name(m, object::kSensor, s), kReason);
  }
}

bool has_histories(const ModelView& m, bool sensors) {
  bool any = false;
  for (int a = 0; a < m.nactuator; a++) any |= m.actuator_delay[a] != 0;
  for (int s = 0; sensors && s < m.nsensor; s++) any |= has_history(m, s);
  return any;
}

void require_open_histories(const ModelView& m) {
  for (int s = 0; s < m.nsensor; s++) {
    if (m.sensor_delay[s] == 0 || !has_history(m, s)) continue;
    if (m.sensor_cutoff[s] > 0 && !(sensor_type(m, s).flags & SensorType::kDistanceCutoff)) {
      throw Unsupported(element_name(m, object::kSensor, s),
                        "it is delayed and has a cutoff, which limits values that are not known");
    }
    if (m.opt.integrator == integrator::kRK4) {
      throw Unsupported(element_name(m, object::kSensor, s),
                        "it is delayed, and RK4 records it after its last stage");
    }
  }
}

void require_state(const ModelView& m, const DataView& d) {
  require_option("timestep", &m.opt.timestep, 1);
  require_option("gravity", m.opt.gravity.v, 3);
  require_option("wind", m.opt.wind.v, 3);
  require_option("magnetic", m.opt.magnetic.v, 3);
  require_option("density", &m.opt.density, 1);
  require_option("viscosity", &m.opt.viscosity, 1);
  require_finite("qpos", d.qpos, m.nq);
  require_finite("qvel", d.qvel, m.nv);
  require_finite("act", d.act, m.na);
  require_finite("ctrl", d.ctrl, m.nu);
  require_finite("qfrc_applied", d.qfrc_applied, m.nv);
  require_finite("xfrc_applied", d.xfrc_applied, 6 * m.nbody);
  require_finite("mocap_pos", d.mocap_pos, 3 * m.nmocap);
  require_finite("mocap_quat", d.mocap_quat, 4 * m.nmocap);
}

void require_inverse(const ModelView& m, const DataView& d) {
  require_model(m);
  if ((m.opt.enableflags & enable::kInvDiscrete) && m.opt.integrator == integrator::kRK4) {
    throw Unsupported("flag invdiscrete", "MuJoCo has no discrete-time inverse for RK4");
  }
  require_awake(m, d);
  require_state(m, d);
  require_finite("qacc", d.qacc, m.nv);
}

void require_rows(const ModelView& m, const DataView& d) {
  if (m.flg_adhesion) {
    for (int c = 0; c < d.ncon; c++) {
      ContactView contact = view_contact(d, c);
      if (contact.adhesion == 0 || contact.efc_address >= 0) continue;
      throw Unsupported(contact_name(m, contact), "adhesion across a gap is not supported");
    }
  }
}

void require_sensors(const ModelView& m, const unsigned char* wanted) {
  for (int s = 0; s < m.nsensor; s++) {
    if (wanted && !wanted[s]) continue;
    if (const char* reason = sensor_refusal(m, s)) {
      throw Unsupported(element_name(m, object::kSensor, s), reason, s);
    }
  }
}

}  // namespace mujacobian

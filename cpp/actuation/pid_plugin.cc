#include "actuation/pid_plugin.h"

#include <cstdlib>
#include <optional>

#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// The attributes of an instance. The largest integral is that of the error, not of its force.
struct PidPlugin {
  double kp, ki, kd;
  std::optional<double> most, slew;
};

std::optional<double> read_number(const ModelView& m, int plugin, const char* attribute) {
  const char* text = plugin_attribute(m, plugin, attribute);
  if (!text || !*text) return std::nullopt;
  return std::strtod(text, nullptr);
}

PidPlugin load_pid_plugin(const ModelView& m, int actuator) {
  const int plugin = m.actuator_plugin[actuator];
  auto gain = [&](const char* name) { return read_number(m, plugin, name).value_or(0); };
  PidPlugin s{gain("kp"), gain("ki"), gain("kd"), {}, read_number(m, plugin, "slewmax")};
  const std::optional<double> force = read_number(m, plugin, "imax");
  if (force && s.ki != 0) s.most = *force / s.ki;
  return s;
}

bool has_dynamics(const ModelView& m, int actuator) {
  return m.actuator_dyntype[actuator] != dynamics::kNone;
}

// Returns the control. The plugin clamps it even if the flag clampctrl is disabled.
template <class T>
T plugin_control(const ModelView& m, const DataView& d, int actuator) {
  const int ctrl = m.actuator_ctrladr[actuator];
  const T u = local_variable<T>(d.ctrl[ctrl], local::kCtrl);
  // tie: control range of a plugin
  return m.actuator_ctrllimited[ctrl] ? clamp(u, m.actuator_ctrlrange + 2 * ctrl) : u;
}

// Returns the setpoint that follows `input` at a limited rate. The first step of a simulation has
// no last setpoint.                                                                       (PID-1)
template <class T>
T setpoint(const ModelView& m, const DataView& d, const PidPlugin& s, const Variables<T>& x,
           const T& input) {
  if (!s.slew || !(d.time > 0)) return input;
  const T& last = x.act[s.ki != 0 ? 1 : 0];
  const double most = *s.slew * m.opt.timestep;
  // tie: slew rate of a plugin, falling
  if (input.v < last.v - most) return last - most;
  // tie: slew rate of a plugin
  if (input.v > last.v + most) return last + most;
  return input;
}

// Returns the integral of the error at the end of the step.                               (PID-2)
template <class T>
T next_integral(const ModelView& m, const PidPlugin& s, const Variables<T>& x, const T& error) {
  const T next = x.act[0] + m.opt.timestep * error;
  if (!s.most) return next;
  const double range[2] = {-*s.most, *s.most};
  // tie: integral of a plugin
  return clamp(next, range);
}

}  // namespace

int pid_plugin_activation_count(const ModelView& m, int actuator) {
  const PidPlugin s = load_pid_plugin(m, actuator);
  return (s.ki != 0) + s.slew.has_value() + has_dynamics(m, actuator);
}

template <class T>
void pid_plugin_rates(const ModelView& m, const DataView& d, int actuator, Variables<T>& x) {
  const PidPlugin s = load_pid_plugin(m, actuator);
  const bool dynamic = has_dynamics(m, actuator);
  const T input =
      dynamic ? x.act[m.actuator_actnum[actuator] - 1] : plugin_control<T>(m, d, actuator);
  const T target = setpoint(m, d, s, x, input);
  const double frequency = 1 / m.opt.timestep;
  int k = 0;
  if (s.ki != 0) {
    x.act_rate[k] = frequency * (next_integral(m, s, x, target - x.length) - x.act[k]);
    k++;
  }
  if (s.slew) x.act_rate[k] = frequency * (target - x.act[k]);
}

template <class T>
T pid_plugin_force(const ModelView& m, const DataView& d, int actuator, const Variables<T>& x,
                   const T& last) {
  const PidPlugin s = load_pid_plugin(m, actuator);
  const bool dynamic = has_dynamics(m, actuator);
  const T input = dynamic ? last : plugin_control<T>(m, d, actuator);
  const T error = setpoint(m, d, s, x, input) - x.length;
  T error_rate = -x.rate;
  if (dynamic) error_rate = error_rate + x.act_rate[m.actuator_actnum[actuator] - 1];
  T force = s.kp * error + s.kd * error_rate;  // (PID-3)
  if (s.ki != 0) force = force + s.ki * next_integral(m, s, x, error);
  return force;
}

const char* pid_plugin_refusal(const ModelView& m, int a) {
  if (!is_plugin(m, m.actuator_plugin[a], kPidPlugin)) return "its plugin";
  if (m.actuator_ctrladr[a] != a || m.actuator_outadr[a] != a) {
    return "an actuator plugin after an actuator with several inputs or outputs";
  }
  const int dyn = m.actuator_dyntype[a], bias_type = m.actuator_biastype[a];
  if (dyn < dynamics::kNone || dyn > dynamics::kFilterExact) {
    return "the activation dynamics of its plugin are not supported";
  }
  if (m.actuator_gaintype[a] != gain::kFixed ||
      (bias_type != bias::kNone && bias_type != bias::kAffine)) {
    return "the gain or bias type of its plugin is not supported";
  }
  const bool on_tendon = m.actuator_trntype[a] == transmission::kTendon;
  if (on_tendon && m.tendon_actfrclimited[m.actuator_trnid[2 * a]]) {
    return "an actuator plugin on a tendon with a force range";
  }
  return nullptr;
}

// for Number and CurvedNumber
template void pid_plugin_rates(const ModelView&, const DataView&, int, Variables<Number>&);
template Number pid_plugin_force(const ModelView&, const DataView&, int, const Variables<Number>&,
                                 const Number&);
template void pid_plugin_rates(const ModelView&, const DataView&, int, Variables<CurvedNumber>&);
template CurvedNumber pid_plugin_force(const ModelView&, const DataView&, int,
                                       const Variables<CurvedNumber>&, const CurvedNumber&);

}  // namespace mujacobian

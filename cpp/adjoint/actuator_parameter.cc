#include "actuation/force_law.h"
#include "actuation/muscle.h"
#include "adjoint/path_parameter.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// The changes of an actuator's force before its limits, and of its damping and stiffness in the
// integrator's matrix, per unit of a component of gainprm or biasprm.
struct LawChange {
  Number force = 0, damping = 0, stiffness = 0;
};
using LawVariables = Variables<Number>;

// Returns the change for components 0, 1, 2 of an affine gain or bias, times its input.
LawChange affine_change(const LawVariables& x, int component, const Number& input) {
  if (component == 0) return {input, 0, 0};
  if (component == 1) return {input * x.length, 0, input};
  return {input * x.rate, input, 0};
}

// Returns the change for the gains of a servo on the errors of its setpoints.
LawChange pid_change(const ModelView& m, const LawVariables& x, const Parameter& p) {
  if (p.kind == Parameter::kGain) {
    const bool integrates = m.actuator_actnum[p.id] && m.actuator_gainprm[kNGain * p.id] > 0;
    return {integrates ? gain_input(m, p.id, x) : 0, 0, 0};
  }
  const int inputs = m.actuator_ctrlspec[p.id];
  LawChange change = affine_change(x, p.component, 1);
  const bool position = inputs & input::kPosition, velocity = inputs & input::kVelocity;
  if (p.component == 1 && position) change.force = change.force - x.ctrl[0];
  if (p.component == 2 && velocity) change.force = change.force - x.ctrl[position ? 1 : 0];
  return change;
}

// Returns the change for a muscle. Its force is proportional to the parameter.
LawChange muscle_change(const ModelView& m, const LawVariables& x, const Parameter& p) {
  if (p.kind == Parameter::kBias) {
    const double unit = 1 / m.actuator_biasprm[kNBias * p.id + p.component];
    const MuscleBias bias = muscle_bias(m, p.id, x.length);
    return {unit * bias.force, 0, unit * bias.length_slope};
  }
  const double prm = m.actuator_gainprm[kNGain * p.id + p.component];
  const Number unit = (1 / prm) * gain_input(m, p.id, x);
  const MuscleGain<Number> gain = muscle_gain(m, p.id, x.length, x.rate);
  return {unit * gain.gain, unit * gain.rate_slope, unit * gain.length_slope};
}

// Returns the change for acc0 of a muscle. If prm[2] < 0, its largest force is prm[3] / acc0.
// (PAR-18)
LawChange muscle_weight_change(const ModelView& m, const LawVariables& x, int actuator) {
  const double weight = m.actuator_acc0[m.actuator_outadr[actuator]];
  const double unit = weight > kMinVal ? -1 / weight : 0;
  LawChange change;
  if (m.actuator_gaintype[actuator] == gain::kMuscle &&
      m.actuator_gainprm[kNGain * actuator + 2] < 0) {
    const MuscleGain<Number> gain = muscle_gain(m, actuator, x.length, x.rate);
    const Number scale = unit * gain_input(m, actuator, x);
    change = {scale * gain.gain, scale * gain.rate_slope, scale * gain.length_slope};
  }
  if (m.actuator_biastype[actuator] == bias::kMuscle &&
      m.actuator_biasprm[kNBias * actuator + 2] < 0) {
    const MuscleBias bias = muscle_bias(m, actuator, x.length);
    change.force = change.force + unit * bias.force;
    change.stiffness = change.stiffness + unit * bias.length_slope;
  }
  return change;
}

LawChange law_change(const ModelView& m, const DataView& d, const Parameter& p) {
  const LawVariables x = actuator_variables<Number>(m, d, p.id);
  if (p.kind == Parameter::kActuatorWeight) return muscle_weight_change(m, x, p.id);
  const bool of_gain = p.kind == Parameter::kGain;
  if (m.actuator_gaintype[p.id] == gain::kPid) return pid_change(m, x, p);
  if (of_gain && m.actuator_gaintype[p.id] == gain::kMuscle) return muscle_change(m, x, p);
  if (!of_gain && m.actuator_biastype[p.id] == bias::kMuscle) return muscle_change(m, x, p);
  return affine_change(x, p.component, of_gain ? gain_input(m, p.id, x) : 1);
}

// Returns whether MuJoCo shifts the setpoint of a servo on a rotation by whole turns in this state.
// It does so only while the gain is minus the stiffness, so that neither may change alone.
bool is_shifted(const ModelView& m, const DataView& d, const Parameter& p) {
  const double period = wrap_period(m, p.id);
  if (period <= 0 || p.component != (p.kind == Parameter::kGain ? 0 : 1)) return false;
  const LawVariables x = actuator_variables<Number>(m, d, p.id);
  const int acts = m.actuator_actnum[p.id];
  const double setpoint = acts ? x.act[acts - 1].v : x.ctrl[0].v;
  return gain_input(m, p.id, x).v != setpoint;
}

// Returns whether the force of a muscle is proportional to a component of its gainprm or biasprm:
// to prm[2], or to prm[3] if prm[2] is negative.
bool scales_muscle(const double* prm, int component) {
  return prm[2] < 0 ? component == 3 && prm[3] != 0 : component == 2 && prm[2] != 0;
}

// Returns why a gain or bias of an actuator is not supported as a parameter, null if it is.
const char* gain_refusal(const ModelView& m, const Parameter& p) {
  if (p.kind == Parameter::kActuatorWeight) return nullptr;
  if (m.actuator_plugin[p.id] >= 0) return "its plugin replaces its gain and bias";
  if (wrap_period(m, p.id) > 0 && m.actuator_gaintype[p.id] == gain::kPid) {
    return "gain and bias of a servo on a rotation are not supported as parameters";
  }
  if (p.kind == Parameter::kGain) {
    const int type = m.actuator_gaintype[p.id];
    const double* prm = m.actuator_gainprm + kNGain * p.id;
    if ((type == gain::kFixed || type == gain::kPid) && p.component == 0) return nullptr;
    if (type == gain::kAffine && p.component < 3) return nullptr;
    if (type == gain::kMuscle && scales_muscle(prm, p.component)) return nullptr;
    return "this component of its gain is not supported as a parameter";
  }
  const int type = m.actuator_biastype[p.id];
  const double* prm = m.actuator_biasprm + kNBias * p.id;
  if (type == bias::kAffine && p.component < 3) return nullptr;
  if (type == bias::kMuscle && scales_muscle(prm, p.component)) return nullptr;
  return "this component of its bias is not supported as a parameter";
}

InputSlopes local_inputs(const ModelView& m, int actuator, const Number& x, Arena& arena) {
  const int acts = m.actuator_actnum[actuator], ctrls = m.actuator_ctrlnum[actuator];
  int* input = arena.take<int>(acts + ctrls);
  double* slope = arena.take<double>(acts + ctrls);
  for (int k = 0; k < acts; k++) {
    input[k] = m.actuator_actadr[actuator] + k, slope[k] = x.d[local::kAct + k];
  }
  for (int k = 0; k < ctrls; k++) {
    input[acts + k] = m.na + m.actuator_ctrladr[actuator] + k;
    slope[acts + k] = x.d[local::kCtrl + k];
  }
  return {acts + ctrls, input, slope};
}

}  // namespace

ActuatorChange actuator_change(const ModelView& m, const DataView& d, const ActuatorForces& all,
                               const Parameter& p) {
  for (int k = 0; k < all.count; k++) {
    const ActuatorForce& f = all.force[k];
    if (f.actuator != p.id) continue;
    if (f.share != 0) {
      throw Unsupported(
          element_name(m, object::kActuator, p.id),
          "its gain and bias are not supported as parameters beyond the force range of its tendon");
    }
    if (is_shifted(m, d, p)) {
      throw Unsupported(element_name(m, object::kActuator, p.id),
                        "its gain and bias are not supported as parameters while its setpoint is "
                        "more than half a turn away");
    }
    const LawChange change = law_change(m, d, p);
    return {k, f.slope * change.force, f.implicit_share * change.damping,
            f.implicit_share * change.stiffness};
  }
  return {-1, 0, 0, 0};  // it is disabled
}

void add_actuator(ColumnContext& x, const Parameter& p, const Column& column) {
  const ActuatorForces& actuators = x.actuators();
  const ActuatorChange change = actuator_change(x.m, x.d, actuators, p);
  if (change.index < 0) return;
  // the metric contains only stiffness and damping of the stabilizing sign
  const PathForce& acting = x.s.forward.paths.actuation.forces[change.index];
  const bool stiff = acting.stiffness <= 0, damped = !has_metric(x.m) || acting.damping <= 0;
  const double gear = path_gear(x.m, p.id);
  add_path(
      x,
      {actuators.force[change.index].unlimited.path, gear * change.force.v,
       damped ? gear * gear * change.damping.v : 0, stiff ? gear * gear * change.stiffness.v : 0},
      x.s.forward.paths.actuation.frozen, column);
}

void curve_actuator(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  const ActuatorForces& actuators = x.columns.actuators();
  const ActuatorChange change = actuator_change(x.m, x.d, actuators, p);
  if (change.index < 0) return;
  const CurvedPath path{actuators.force[change.index].unlimited.path, {-1, -1}};
  const double gear = path_gear(x.m, p.id);
  const Number &force = change.force, &damping = change.damping;
  const PathLaw law{gear * force.v,
                    gear * gear * force.d[local::kLength],
                    gear * gear * force.d[local::kRate],
                    local_inputs(x.m, p.id, gear * force, x.arena),
                    gear * gear * damping.v,
                    gear * gear * gear * damping.d[local::kLength],
                    gear * gear * gear * damping.d[local::kRate],
                    local_inputs(x.m, p.id, gear * gear * damping, x.arena)};
  add_law_slopes(x, path, law, x.s.forward.paths.actuation.frozen, to);
}

void require_actuator(const ModelView& m, const Parameter& p) {
  if (const char* reason = gain_refusal(m, p)) {
    throw Unsupported(element_name(m, object::kActuator, p.id), reason);
  }
}

}  // namespace mujacobian

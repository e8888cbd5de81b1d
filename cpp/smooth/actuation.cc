#include "smooth/actuation.h"

#include <cmath>
#include <cstring>

#include "layout/engine.h"
#include "layout/enums.h"
#include "smooth/passive.h"
#include "smooth/transmission.h"
#include "spatial/vector.h"

namespace mujacobian {
namespace {

// Beyond the range, where a clamp makes the derivative zero; at its ends the inside counts.
bool outside(double x, const double range[2]) { return x < range[0] || x > range[1]; }

// Saturated as MuJoCo's implicit integrators see it, from the force after clamping.
bool at_limit(double x, const double range[2]) { return x <= range[0] || x >= range[1]; }

double clamp(double x, const double range[2]) {
  return x < range[0] ? range[0] : x > range[1] ? range[1] : x;
}

// The force of one actuator as a function of its length l, rate and control.
struct Servo {
  double force, dlength, drate, dctrl;
  double damping, damping_dctrl;  // MuJoCo's own d force/d rate, and its change with the control
};

Servo servo(const ModelView& m, const DataView& d, int a) {
  int out = m.actuator_outadr[a], u = m.actuator_ctrladr[a];
  const double *g = m.actuator_gainprm + kNGain * a, *b = m.actuator_biasprm + kNBias * a;
  bool affine_gain = m.actuator_gaintype[a] == gain::kAffine;
  bool affine_bias = m.actuator_biastype[a] == bias::kAffine;
  double l = d.actuator_length[out], rate = d.actuator_velocity[out];

  // control within its range
  double ctrl = d.ctrl[u];
  bool clamped = false;
  if (m.actuator_ctrllimited[u] && !(m.opt.disableflags & disable::kClampCtrl)) {
    const double* range = m.actuator_ctrlrange + 2 * u;
    clamped = outside(ctrl, range);
    ctrl = clamp(ctrl, range);
  }

  // position servo on a ball joint: the setpoint's representative nearest to the length
  bool servo_shape = !affine_gain && affine_bias && g[0] == -b[1];
  int trn = m.actuator_trntype[a];
  if (servo_shape && trn == transmission::kJoint &&
      m.jnt_type[m.actuator_trnid[2 * a]] == joint::kBall) {
    double period = 2 * M_PI * norm(load3(m.actuator_gear + 6 * out));
    if (period > 0) ctrl -= period * std::round((ctrl - l) / period);
  }

  Servo s{};
  double gain = affine_gain ? g[0] + g[1] * l + g[2] * rate : g[0];
  s.force = gain * ctrl;
  s.dctrl = clamped ? 0 : gain;
  if (affine_gain) {
    s.dlength = g[1] * ctrl, s.drate = g[2] * ctrl;
    s.damping = g[2] * ctrl;
    s.damping_dctrl = clamped ? 0 : g[2];
  }
  if (affine_bias) {
    s.force += b[0] + b[1] * l + b[2] * rate;
    s.dlength += b[1], s.drate += b[2], s.damping += b[2];
  }
  return s;
}

// Everything about an actuator between its servo law and the generalized force.
struct Output {
  int actuator;
  Servo servo;
  double force;  // after tendon scaling and clamping
  bool clamped;  // by its force range
};

// A tendon whose actuators together exceed its force range: forces are scaled to the limit. Their
// sum along the tendon then changes by                                                   (ACT-4)
//   ratio sum_j ([j not clamped] gear_j - mean) df_j,   mean = sum_{j not clamped} gear_j f_j /
//   total
struct Scaling {
  double total;  // of the forces before scaling
  double ratio;  // limit / total where the range is exceeded, else 0
  double mean;
};

double gear_of(const ModelView& m, int actuator) {
  return m.actuator_gear[6 * m.actuator_outadr[actuator]];
}

bool on_tendon(const ModelView& m, int actuator) {
  return m.actuator_trntype[actuator] == transmission::kTendon;
}

// Scale the forces on overloaded tendons and clamp all to their force ranges.
Scaling* limit_forces(const ModelView& m, Output* outputs, int count, Arena& arena) {
  Scaling* scaling = arena.zeros<Scaling>(m.ntendon);
  for (int k = 0; k < count; k++) {
    int a = outputs[k].actuator;
    if (on_tendon(m, a)) scaling[m.actuator_trnid[2 * a]].total += outputs[k].force;
  }
  for (int t = 0; t < m.ntendon; t++) {
    const double* range = m.tendon_actfrcrange + 2 * t;
    if (m.tendon_actfrclimited[t] && scaling[t].total && outside(scaling[t].total, range)) {
      scaling[t].ratio = clamp(scaling[t].total, range) / scaling[t].total;
    }
  }
  for (int k = 0; k < count; k++) {
    Output& o = outputs[k];
    Scaling* s = on_tendon(m, o.actuator) ? scaling + m.actuator_trnid[2 * o.actuator] : nullptr;
    if (s && s->ratio) o.force *= s->ratio;
    if (m.actuator_forcelimited[o.actuator]) {
      const double* range = m.actuator_forcerange + 2 * o.actuator;
      o.clamped = outside(o.force, range);
      o.force = clamp(o.force, range);
    }
    if (s && s->ratio && !o.clamped) {
      s->mean += gear_of(m, o.actuator) * o.servo.force / s->total;
    }
  }
  return scaling;
}

bool actuated(const ModelView& m) {
  return m.nactuator > 0 && !(m.opt.disableflags & disable::kActuation);
}

// The enabled actuators with their limits applied.
struct LimitedOutputs {
  Output* output;
  int count;
  Scaling* scaling;  // per tendon
};

LimitedOutputs limited_outputs(const ModelView& m, const DataView& d, Arena& arena) {
  LimitedOutputs all{arena.take<Output>(m.nactuator), 0, nullptr};
  for (int a = 0; actuated(m) && a < m.nactuator; a++) {
    if (actuator_disabled(m, a)) continue;
    Servo s = servo(m, d, a);
    all.output[all.count++] = {a, s, s.force, false};
  }
  all.scaling = limit_forces(m, all.output, all.count, arena);
  return all;
}

// An empty cache of the tendons' paths.
Path* no_paths(const ModelView& m, Arena& arena) {
  Path* paths = arena.take<Path>(m.ntendon);
  for (int t = 0; t < m.ntendon; t++) paths[t].n = -1;
  return paths;
}

// The implicit integrators leave saturated actuators out of their damping: those at their own force
// range, since 4.0 also those at the force range of their joint or tendon.
bool damping_left_out(const ModelView& m, const DataView& d, const Output& o,
                      const Scaling* scaling) {
  int a = o.actuator, trn = m.actuator_trntype[a], id = m.actuator_trnid[2 * a];
  if (m.actuator_forcelimited[a] && at_limit(o.force, m.actuator_forcerange + 2 * a)) return true;
  if (engine().version < 4000000) return false;
  if (trn == transmission::kTendon && m.tendon_actfrclimited[id]) {
    return at_limit(scaling[id].total, m.tendon_actfrcrange + 2 * id);
  }
  bool on_joint = trn == transmission::kJoint || trn == transmission::kJointInParent;
  if (on_joint && m.jnt_actfrclimited[id]) {
    return at_limit(d.qfrc_actuator[m.jnt_dofadr[id]], m.jnt_actfrcrange + 2 * id);
  }
  return false;
}

// Path force of one actuator. On tendons the path is the tendon's, so the gear is part of the
// force.
PathForce path_force(const ModelView& m, const DataView& d, const Output& o, const Scaling* scaling,
                     Path* tendon_paths, Arena& arena) {
  const Servo& s = o.servo;
  PathForce f{};
  f.path = transmission_path(m, d, o.actuator, tendon_paths, arena);

  double gear = 1, weight = o.clamped ? 0 : 1;
  if (on_tendon(m, o.actuator)) {
    const Scaling& t = scaling[m.actuator_trnid[2 * o.actuator]];
    gear = gear_of(m, o.actuator);
    weight *= gear;
    if (t.ratio) weight = t.ratio * (weight - t.mean);
  }
  f.force = gear * o.force;
  f.dlength = weight * s.dlength * gear;
  f.drate = weight * s.drate * gear;
  f.inputs = arena.take<InputSlope>(1);
  f.input_count = 1;
  f.inputs[0] = {m.na + m.actuator_ctrladr[o.actuator], weight * s.dctrl, 0};

  if (!damping_left_out(m, d, o, scaling)) {
    f.damping = gear * gear * s.damping;
    f.inputs[0].damping = gear * gear * s.damping_dctrl;
  }
  return f;
}

// Dofs of joints whose total actuator force exceeds their range; null if there is none.
unsigned char* saturated_joints(const ModelView& m, const DataView& d, const PathForce* forces,
                                int count, Arena& arena) {
  bool limited = false;
  for (int j = 0; j < m.njnt && !limited; j++) limited = m.jnt_actfrclimited[j];
  if (!limited) return nullptr;

  double* total = arena.zeros<double>(m.nv);
  for (int k = 0; k < count; k++) {
    const Path& p = forces[k].path;
    for (int a = 0; a < p.n; a++) total[p.dofs[a]] += p.moment[a] * forces[k].force;
  }
  bool gravcomp = m.flg_gravcomp && passive_enabled(m);
  unsigned char* frozen = arena.zeros<unsigned char>(m.nv);
  bool any = false;
  for (int j = 0; j < m.njnt; j++) {
    if (!m.jnt_actfrclimited[j]) continue;
    int dof = m.jnt_dofadr[j];
    if (gravcomp && m.jnt_actgravcomp[j]) total[dof] += d.qfrc_gravcomp[dof];
    if (outside(total[dof], m.jnt_actfrcrange + 2 * j)) frozen[dof] = any = true;
  }
  return any ? frozen : nullptr;
}

}  // namespace

bool pulls_tendon(const ModelView& m, int actuator, int tendon) {
  return on_tendon(m, actuator) && m.actuator_trnid[2 * actuator] == tendon;
}

ActuatorForces actuator_forces(const ModelView& m, const DataView& d, Arena& arena) {
  const LimitedOutputs all = limited_outputs(m, d, arena);
  ActuatorForces forces{arena.zeros<ActuatorForce>(all.count), all.count};
  Path* tendon_paths = no_paths(m, arena);
  for (int k = 0; k < all.count; k++) {
    const Output& o = all.output[k];
    const bool scaled =
        on_tendon(m, o.actuator) && all.scaling[m.actuator_trnid[2 * o.actuator]].ratio != 0;
    const double gear = on_tendon(m, o.actuator) ? gear_of(m, o.actuator) : 1;
    ActuatorForce& f = forces.force[k];
    f.actuator = o.actuator;
    f.slope = o.clamped ? 0 : 1;
    if (scaled) {
      const Scaling& t = all.scaling[m.actuator_trnid[2 * o.actuator]];
      f.slope *= t.ratio;
      f.share = o.servo.force / t.total;
    }
    f.law.path = transmission_path(m, d, o.actuator, tendon_paths, arena);
    f.law.force = o.servo.force;
    f.law.dlength = gear * o.servo.dlength;
    f.law.drate = gear * o.servo.drate;
    f.law.inputs = arena.take<InputSlope>(1);
    f.law.input_count = 1;
    f.law.inputs[0] = {m.na + m.actuator_ctrladr[o.actuator], o.servo.dctrl, 0};
  }
  return forces;
}

Actuation no_actuation(const ModelView& m, Arena& arena) {
  unsigned char* all = m.flg_gravcomp ? arena.take<unsigned char>(m.nv) : nullptr;
  if (all) std::memset(all, 1, m.nv);
  return {nullptr, 0, all};
}

Actuation actuation(const ModelView& m, const DataView& d, Arena& arena) {
  if (!actuated(m)) return no_actuation(m, arena);
  const LimitedOutputs all = limited_outputs(m, d, arena);
  Path* tendon_paths = no_paths(m, arena);
  PathForce* forces = arena.take<PathForce>(all.count);
  for (int k = 0; k < all.count; k++) {
    forces[k] = path_force(m, d, all.output[k], all.scaling, tendon_paths, arena);
  }
  return {forces, all.count, saturated_joints(m, d, forces, all.count, arena)};
}

bool actuator_disabled(const ModelView& m, int actuator) {
  int group = m.actuator_group[actuator];
  return group >= 0 && group <= 30 && (m.opt.disableactuator & (1 << group));
}

const char* actuator_refusal(const ModelView& m, int a) {
  if (m.actuator_plugin[a] >= 0) return "it is a plugin";
  if (m.actuator_delay[a] != 0) return "its control is delayed";
  if (m.actuator_dyntype[a] != dynamics::kNone || m.actuator_actnum[a]) {
    return "activation dynamics";
  }
  int gain_type = m.actuator_gaintype[a], bias_type = m.actuator_biastype[a];
  if (gain_type != gain::kFixed && gain_type != gain::kAffine) return "its gain type";
  if (bias_type != bias::kNone && bias_type != bias::kAffine) return "its bias type";
  return transmission_refusal(m, a);
}

}  // namespace mujacobian

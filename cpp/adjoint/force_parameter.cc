#include "actuation/force_law.h"
#include "actuation/muscle.h"
#include "adjoint/curve.h"
#include "forces/passive.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "second_order/path.h"
#include "spatial/rotation.h"

namespace mujacobian {
namespace {

// Throws if Euler's method is explicit because no dof is damped. It is implicit with any damping.
void require_damped(const ModelView& m) {
  if (m.opt.integrator != integrator::kEuler || euler_is_damped(m, /*inverse=*/false)) return;
  throw Unsupported(
      "damping as a parameter",
      "no dof is damped, and Euler's method changes its form with the first damper: give one dof "
      "some damping");
}

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

// The changes of the force along a path, and of its damping and stiffness in the integrator's
// matrix.
struct PathChange {
  const Path& path;
  double force, damping, stiffness;
};

// The metric adds the force -h (k (m v + h m a) + b (m a)), and h (h k + b) m_i^2 to M_ii   (PAR-5)
void add_to_metric(const ColumnContext& x, const PathChange& change, const Column& column) {
  const Path& path = change.path;
  const double h = x.m.opt.timestep;
  double along = 0, rate = 0;  // m a, m v
  for (int a = 0; a < path.n; a++) {
    along += path.moment[a] * x.s.at[path.dofs[a]];
    rate += path.moment[a] * x.d.qvel[path.dofs[a]];
  }
  const double pull = h * (change.stiffness * (rate + h * along) + change.damping * along);
  for (int a = 0; a < path.n; a++) {
    const int i = path.dofs[a];
    const double moment = path.moment[a];
    column.early[i] += moment * pull;
    if (column.added) {
      column.added[i] -= moment * moment * h * (h * change.stiffness + change.damping);
    }
  }
}

// Adds the columns of a force along a path, and of its damping in the matrix of implicit
// integrators:
//   early = m force,   late = -h D w = h damping m (m . w)                                  (PAR-5)
void add_path(const ColumnContext& x, const PathChange& change, const unsigned char* frozen,
              const Column& column) {
  const Path& path = change.path;
  for (int a = 0; a < path.n; a++) {
    const int i = path.dofs[a];
    if (!(frozen && frozen[i])) column.early[i] += path.moment[a] * change.force;
    if (change.damping == 0 || !x.s.step.block) continue;  // only implicit integrators
    double rate = 0;
    for (int b = 0; b < path.n; b++) {
      if (in_damping(x.m, x.s.forward.tree, x.s.step.block, i, path.dofs[b])) {
        rate += path.moment[b] * x.s.step.w[path.dofs[b]];
      }
    }
    column.late[i] += x.m.opt.timestep * change.damping * path.moment[a] * rate;
  }
  if (has_metric(x.m)) add_to_metric(x, change, column);
}

// The metric adds the force -h k (v + h a) of a joint's spring if k is positive.
void add_spring_to_metric(const ColumnContext& x, int joint, const Column& column, double k) {
  const double h = x.m.opt.timestep;
  SpringSlope spring[2];
  for (int s = 0, count = spring_slopes(x.m, x.d, joint, spring); s < count; s++) {
    if (spring[s].stiffness <= 0) continue;
    for (int i = spring[s].dof; i < spring[s].dof + spring[s].n; i++) {
      column.early[i] -= h * k * (x.d.qvel[i] + h * x.s.at[i]);
      if (column.added) column.added[i] += h * h * k;
    }
  }
}

// Returns the rest position of the spring of a joint.
const double* spring_rest(const ModelView& m, const DataView& d, int joint) {
  const bool plastic = is_plastic(m.jnt_plasticadr, joint);
  return plastic ? d.plastic + m.jnt_plasticadr[joint] : m.qpos_spring + m.jnt_qposadr[joint];
}

void add_stiffness(const ColumnContext& x, int joint, const Column& column) {
  if (!springs_enabled(x.m)) return;
  int qadr = x.m.jnt_qposadr[joint], dof = x.m.jnt_dofadr[joint], type = x.m.jnt_type[joint];
  const double *qpos = x.d.qpos + qadr, *rest = spring_rest(x.m, x.d, joint);
  if (has_metric(x.m)) add_spring_to_metric(x, joint, column, 1);
  if (type == joint::kSlide || type == joint::kHinge) {
    column.early[dof] -= qpos[0] - rest[0];
    return;
  }
  if (type == joint::kFree) {
    store3(column.early + dof, load3(column.early + dof) - (load3(qpos) - load3(rest)));
    qpos += 3, rest += 3, dof += 3;
  }
  store3(column.early + dof, load3(column.early + dof) - quaternion_difference(qpos, rest));
}

// The extension of a tendon beyond its rest length, and the shares of both ends of the dead band.
struct TendonStretch {
  double x;
  double share[2];
  bool plastic;  // the rest length is a state

  bool is_slack() const { return share[0] == 0 && share[1] == 0; }
};

TendonStretch tendon_stretch(const ModelView& m, const DataView& d, int tendon) {
  const bool plastic = is_plastic(m.tendon_plasticadr, tendon);
  const double* rest =
      plastic ? d.plastic + m.tendon_plasticadr[tendon] : m.tendon_lengthspring + 2 * tendon;
  const double length = d.ten_length[tendon];
  // tie: dead band as a parameter
  if (length > rest[1]) return {length - rest[1], {0, 1}, plastic};
  if (length < rest[0]) return {length - rest[0], {1, 0}, plastic};
  // at the only rest length of a spring, both ends of the dead band share the slope      (PAR-24)
  // tie: only rest length as a parameter
  const double share = rest[0] == rest[1] ? 0.5 : 0;
  return {0, {share, share}, plastic};
}

// A tendon as a path. Its second derivatives are not needed.
CurvedPath tendon_path_of(const CurveContext& x, int tendon) {
  return {tendon_path(x.m, x.d, tendon, x.arena), {-1, -1}};
}

// The slopes of a number with respect to activations and controls.
struct InputSlopes {
  int count;
  const int* input;
  const double* slope;
};

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

// The change of the force along a path per unit of a parameter, and of its damping in the matrix of
// implicit integrators, with their slopes.
struct PathLaw {
  double force, by_length, by_rate;
  InputSlopes by_input;
  double damping, damping_by_length, damping_by_rate;
  InputSlopes damping_by_input;
};

PathFunction law_function(const CurveContext& x, const CurvedPath& path, double value,
                          double by_length, double by_rate, const InputSlopes& by_input) {
  PathFunction f = make_path_function(2 + by_input.count, x.arena);
  f.value = value;
  f.scalar[0] = {PathScalar::kLength, &path, nullptr, nullptr, 0};
  f.scalar[1] = {PathScalar::kVelocity, &path, x.d.qvel, nullptr, 0};
  f.slope[0] = by_length, f.slope[1] = by_rate;
  for (int k = 0; k < by_input.count; k++) {
    f.scalar[2 + k] = {PathScalar::kInput, nullptr, nullptr, nullptr, by_input.input[k]};
    f.slope[2 + k] = by_input.slope[k];
  }
  return f;
}

// Adds the slopes of (mu . m) force + h damping nu . m (m . w)                      (PAR-5, HVP-10)
void add_law_slopes(const CurveContext& x, const CurvedPath& path, const PathLaw& law,
                    const unsigned char* frozen, const ParameterSlopes& to) {
  const PathGradient gradient{to.state, to.ctrl, to.late};
  const double* acting = acting_motion(path.path, x.curved.mu.g, frozen, x.m.nv, x.arena);
  const PathScalar power{PathScalar::kVirtual, &path, acting, nullptr, 0};
  const PathFunction force =
      law_function(x, path, law.force, law.by_length, law.by_rate, law.by_input);
  add_path_gradient(x.m, multiply(force, &power, nullptr, 1, x.arena), gradient);
  if (!x.s.step.block) return;  // only implicit integrators
  const double h = x.m.opt.timestep;
  InputSlopes scaled = law.damping_by_input;
  double* slope = x.arena.take<double>(scaled.count);
  for (int k = 0; k < scaled.count; k++) slope[k] = h * scaled.slope[k];
  scaled.slope = slope;
  const PathFunction damping = law_function(x, path, h * law.damping, h * law.damping_by_length,
                                            h * law.damping_by_rate, scaled);
  const PathProduct implicit = implicit_power(x.m, x.s, path, x.curved.mu.s, x.arena);
  add_path_gradient(x.m, multiply(damping, implicit.a, implicit.b, implicit.count, x.arena),
                    gradient);
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

void add_damper(ColumnContext& x, const Parameter& p, const Column& column) {
  const int dof = p.id;
  if (!dampers_enabled(x.m)) return;
  column.early[dof] -= x.d.qvel[dof];
  if (x.m.opt.integrator == integrator::kEuler && x.m.opt.disableflags & disable::kEulerDamp)
    return;
  // the metric contains only damping of the stabilizing sign
  if (has_metric(x.m) && dof_damping(x.m, dof).slope_odd(x.d.qvel[dof]) < 0) return;
  require_damped(x.m);
  column.late[dof] -= x.m.opt.timestep * x.s.step.w[dof];
  if (column.added) column.added[dof] += x.m.opt.timestep;
}

void curve_damper(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  const int dof = p.id;
  if (!dampers_enabled(x.m)) return;
  to.state[x.m.nv + dof] -= x.curved.mu.g[dof];
  if (x.m.opt.integrator == integrator::kEuler && x.m.opt.disableflags & disable::kEulerDamp)
    return;
  to.late[dof] -= x.m.opt.timestep * x.curved.mu.s[dof];
}

void add_spring(ColumnContext& x, const Parameter& p, const Column& column) {
  if (p.kind == Parameter::kStiffness) return add_stiffness(x, p.id, column);
  // the spring's force depends on q - rest
  if (!springs_enabled(x.m) || is_plastic(x.m.jnt_plasticadr, p.id)) return;
  const int q = x.m.jnt_qposadr[p.id];
  const Poly spring = joint_stiffness(x.m, p.id);
  const double stretch = x.d.qpos[q] - x.m.qpos_spring[q];
  column.early[x.m.jnt_dofadr[p.id]] += spring.slope(stretch);
  if (has_metric(x.m)) add_spring_to_metric(x, p.id, column, -spring.curvature(stretch));
}

void curve_spring(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  const ModelView& m = x.m;
  if (!springs_enabled(m)) return;
  int qadr = m.jnt_qposadr[p.id], dof = m.jnt_dofadr[p.id];
  const int type = m.jnt_type[p.id];
  const double *mu = x.curved.mu.g, *qpos = x.d.qpos + qadr, *rest = spring_rest(m, x.d, p.id);
  if (p.kind == Parameter::kSpringReference) {
    if (is_plastic(m.jnt_plasticadr, p.id)) return;
    to.state[dof] += mu[dof] * joint_stiffness(m, p.id).curvature(qpos[0] - rest[0]);
    return;
  }
  if (type == joint::kSlide || type == joint::kHinge) {
    to.state[dof] -= mu[dof];
    return;
  }
  if (type == joint::kFree) {
    for (int k = 0; k < 3; k++) to.state[dof + k] -= mu[dof + k];
    qpos += 3, rest += 3, dof += 3;
  }
  const Vec3 turn = quaternion_difference(qpos, rest);
  const Vec3 slope = transpose_mul(right_jacobian_inverse(turn), load3(mu + dof));
  store3(to.state + dof, load3(to.state + dof) - slope);
}

// The force of a spring is -x k(x) with x = q - rest.
void couple_springs(CurveContext& x, const ParameterList& params, ParameterPairs& pairs) {
  const ModelView& m = x.m;
  for (int j = 0; springs_enabled(m) && j < params.count; j++) {
    const Parameter& p = params.item[j];
    if (p.kind != Parameter::kSpringReference || is_plastic(m.jnt_plasticadr, p.id)) continue;
    const double mu = x.curved.mu.g[m.jnt_dofadr[p.id]];
    const double stretch = x.d.qpos[m.jnt_qposadr[p.id]] - spring_rest(m, x.d, p.id)[0];
    pairs.add(j, j, -mu * joint_stiffness(m, p.id).curvature(stretch));
    for (int k = 0; k < params.count; k++) {
      const Parameter& other = params.item[k];
      if (other.kind == Parameter::kStiffness && other.id == p.id) pairs.add(j, k, mu);
    }
  }
}

void require_spring(const ModelView& m, const Parameter& p) {
  if (p.kind == Parameter::kStiffness) return;
  require_single_dof(
      m, p, "the rest position of a joint with several dofs is not supported as a parameter");
}

void add_tendon(ColumnContext& x, const Parameter& p, const Column& column) {
  PathForce f{};
  const Path path = tendon_path(x.m, x.d, p.id, x.arena);
  const bool acts = tendon_force(x.m, x.d, p.id, path, f);
  if (p.kind == Parameter::kTendonDamping) {
    if (!dampers_enabled(x.m)) return;
    const double damping = has_metric(x.m) && f.damping > 0 ? 0 : -1;
    return add_path(x, {path, -x.d.ten_velocity[p.id], damping, 0}, nullptr, column);
  }
  if (!springs_enabled(x.m)) return;
  const TendonStretch stretch = tendon_stretch(x.m, x.d, p.id);
  const bool stabilizes = f.stiffness <= 0;
  if (p.kind == Parameter::kTendonStiffness) {
    if (stretch.is_slack() || stretch.x == 0) return;
    return add_path(x, {path, -stretch.x, 0, stabilizes ? -1. : 0}, nullptr, column);
  }
  const double share = stretch.share[p.component];
  if (stretch.plastic || share == 0 || !acts) return;
  const double stiffening = stabilizes ? -share * f.stiffness_dlength : 0;
  add_path(x, {path, -share * f.dlength, 0, stiffening}, nullptr, column);
}

void curve_tendon(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  if (p.kind == Parameter::kTendonDamping) {
    if (!dampers_enabled(x.m)) return;
    const PathLaw law{-x.d.ten_velocity[p.id], 0, -1, {}, -1, 0, 0, {}};
    return add_law_slopes(x, tendon_path_of(x, p.id), law, nullptr, to);
  }
  const TendonStretch stretch = tendon_stretch(x.m, x.d, p.id);
  if (!springs_enabled(x.m) || stretch.is_slack()) return;
  if (p.kind == Parameter::kTendonStiffness) {
    return add_law_slopes(x, tendon_path_of(x, p.id), {-stretch.x, -1, 0, {}, 0, 0, 0, {}}, nullptr,
                          to);
  }
  if (stretch.plastic) return;
  const Poly spring = acting_stiffness(x.m, p.id);
  const double share = stretch.share[p.component];
  const PathLaw law{
      share * spring.slope(stretch.x), share * spring.curvature(stretch.x), 0, {}, 0, 0, 0, {}};
  add_law_slopes(x, tendon_path_of(x, p.id), law, nullptr, to);
}

void couple_tendons(CurveContext& x, const ParameterList& params, ParameterPairs& pairs) {
  for (int j = 0; springs_enabled(x.m) && j < params.count; j++) {
    const Parameter& p = params.item[j];
    if (p.kind != Parameter::kTendonRestLength) continue;
    const TendonStretch stretch = tendon_stretch(x.m, x.d, p.id);
    if (stretch.plastic || stretch.is_slack()) continue;
    // the force along the path is -x k(x) with x = length - rest
    const Path path = tendon_path(x.m, x.d, p.id, x.arena);
    double power = 0;
    for (int i = 0; i < path.n; i++) power += path.moment[i] * x.curved.mu.g[path.dofs[i]];
    const double curvature = acting_stiffness(x.m, p.id).curvature(stretch.x);
    const double share = stretch.share[p.component];
    for (int k = 0; k < params.count; k++) {
      const Parameter& other = params.item[k];
      if (other.id != p.id) continue;
      if (other.kind == Parameter::kTendonStiffness) pairs.add(j, k, share * power);
      if (other.kind != Parameter::kTendonRestLength || k > j) continue;
      pairs.add(j, k, -share * stretch.share[other.component] * curvature * power);
    }
  }
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

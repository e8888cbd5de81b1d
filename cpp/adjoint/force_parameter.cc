#include "actuation/force_law.h"
#include "actuation/muscle.h"
#include "adjoint/column.h"
#include "forces/passive.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
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
  double force, damping, stiffness;
};

// Returns the change for components 0, 1, 2 of an affine gain or bias, times its input.
LawChange affine_change(const ModelView& m, const DataView& d, int actuator, int component,
                        double input) {
  const int out = m.actuator_outadr[actuator];
  if (component == 0) return {input, 0, 0};
  if (component == 1) return {input * d.actuator_length[out], 0, input};
  return {input * d.actuator_velocity[out], input, 0};
}

// Returns the change for the gains of a servo on the errors of its setpoints.
LawChange pid_change(const ModelView& m, const DataView& d, const Parameter& p) {
  if (p.kind == Parameter::kGain) {
    const bool integrates = m.actuator_actnum[p.id] && m.actuator_gainprm[kNGain * p.id] > 0;
    return {integrates ? gain_input(m, d, p.id) : 0, 0, 0};
  }
  const Variables<Number> x = actuator_variables<Number>(m, d, p.id);
  const int inputs = m.actuator_ctrlspec[p.id];
  LawChange change = affine_change(m, d, p.id, p.component, 1);
  const bool position = inputs & input::kPosition, velocity = inputs & input::kVelocity;
  if (p.component == 1 && position) change.force -= x.ctrl[0].v;
  if (p.component == 2 && velocity) change.force -= x.ctrl[position ? 1 : 0].v;
  return change;
}

// Returns the change for a muscle. Its force is proportional to the parameter.
LawChange muscle_change(const ModelView& m, const DataView& d, const Parameter& p) {
  const Variables<Number> x = actuator_variables<Number>(m, d, p.id);
  if (p.kind == Parameter::kBias) {
    const double unit = 1 / m.actuator_biasprm[kNBias * p.id + p.component];
    const MuscleBias bias = muscle_bias(m, p.id, x.length);
    return {unit * bias.force.v, 0, unit * bias.length_slope.v};
  }
  const double unit = gain_input(m, d, p.id) / m.actuator_gainprm[kNGain * p.id + p.component];
  const MuscleGain<Number> gain = muscle_gain(m, p.id, x.length, x.rate);
  return {unit * gain.gain.v, unit * gain.rate_slope.v, unit * gain.length_slope.v};
}

// Returns the change for acc0 of a muscle. If prm[2] < 0, its largest force is prm[3] / acc0.
// (PAR-18)
LawChange muscle_weight_change(const ModelView& m, const DataView& d, int actuator) {
  const double weight = m.actuator_acc0[m.actuator_outadr[actuator]];
  const double unit = weight > kMinVal ? -1 / weight : 0;
  const Variables<Number> x = actuator_variables<Number>(m, d, actuator);
  LawChange change{};
  if (m.actuator_gaintype[actuator] == gain::kMuscle &&
      m.actuator_gainprm[kNGain * actuator + 2] < 0) {
    const MuscleGain<Number> gain = muscle_gain(m, actuator, x.length, x.rate);
    const double scale = unit * gain_input(m, d, actuator);
    change = {scale * gain.gain.v, scale * gain.rate_slope.v, scale * gain.length_slope.v};
  }
  if (m.actuator_biastype[actuator] == bias::kMuscle &&
      m.actuator_biasprm[kNBias * actuator + 2] < 0) {
    const MuscleBias bias = muscle_bias(m, actuator, x.length);
    change.force += unit * bias.force.v;
    change.stiffness += unit * bias.length_slope.v;
  }
  return change;
}

LawChange law_change(const ModelView& m, const DataView& d, const Parameter& p) {
  if (p.kind == Parameter::kActuatorWeight) return muscle_weight_change(m, d, p.id);
  const bool of_gain = p.kind == Parameter::kGain;
  if (m.actuator_gaintype[p.id] == gain::kPid) return pid_change(m, d, p);
  if (of_gain && m.actuator_gaintype[p.id] == gain::kMuscle) return muscle_change(m, d, p);
  if (!of_gain && m.actuator_biastype[p.id] == bias::kMuscle) return muscle_change(m, d, p);
  return affine_change(m, d, p.id, p.component, of_gain ? gain_input(m, d, p.id) : 1);
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
  if (wrap_period(m, p.id) > 0) {
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

void add_stiffness(const ColumnContext& x, int joint, const Column& column) {
  if (!springs_enabled(x.m)) return;
  int qadr = x.m.jnt_qposadr[joint], dof = x.m.jnt_dofadr[joint], type = x.m.jnt_type[joint];
  const double *qpos = x.d.qpos + qadr, *rest = x.m.qpos_spring + qadr;
  if (is_plastic(x.m.jnt_plasticadr, joint)) rest = x.d.plastic + x.m.jnt_plasticadr[joint];
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
  const double* rest = x.m.tendon_lengthspring + 2 * p.id;
  if (is_plastic(x.m.tendon_plasticadr, p.id)) {
    if (p.kind == Parameter::kTendonRestLength) return;  // the rest length is a state
    rest = x.d.plastic + x.m.tendon_plasticadr[p.id];
  }
  const double length = x.d.ten_length[p.id];
  // tie: dead band as a parameter
  const int side = length > rest[1] ? 1 : length < rest[0] ? 0 : -1;
  const bool stabilizes = f.stiffness <= 0;
  if (p.kind == Parameter::kTendonStiffness) {
    if (side < 0) return;
    return add_path(x, {path, rest[side] - length, 0, stabilizes ? -1. : 0}, nullptr, column);
  }
  // at the only rest length of a spring, both ends of the dead band share the slope      (PAR-24)
  // tie: only rest length as a parameter
  const bool at_rest = side < 0 && rest[0] == rest[1];
  const double share = at_rest ? 0.5 : p.component == side ? 1 : 0;
  if (share == 0 || !acts) return;
  const double stiffening = stabilizes ? -share * f.stiffness_dlength : 0;
  add_path(x, {path, -share * f.dlength, 0, stiffening}, nullptr, column);
}

void add_actuator(ColumnContext& x, const Parameter& p, const Column& column) {
  const ActuatorForces& actuators = x.actuators();
  const ActuatorChange change = actuator_change(x.m, x.d, actuators, p);
  if (change.index < 0) return;
  // the metric contains only stiffness and damping of the stabilizing sign
  const PathForce& acting = x.s.forward.paths.actuation.forces[change.index];
  const bool stiff = acting.stiffness <= 0, damped = !has_metric(x.m) || acting.damping <= 0;
  const double gear = path_gear(x.m, p.id);
  add_path(x,
           {actuators.force[change.index].unlimited.path, gear * change.force,
            damped ? gear * gear * change.damping : 0, stiff ? gear * gear * change.stiffness : 0},
           x.s.forward.paths.actuation.frozen, column);
}

void require_actuator(const ModelView& m, const Parameter& p) {
  if (const char* reason = gain_refusal(m, p)) {
    throw Unsupported(element_name(m, object::kActuator, p.id), reason);
  }
}

}  // namespace mujacobian

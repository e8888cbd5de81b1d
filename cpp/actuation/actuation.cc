#include "actuation/actuation.h"

#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>

#include "actuation/force_law.h"
#include "actuation/orientation.h"
#include "actuation/transmission.h"
#include "forces/implicit.h"
#include "forces/passive.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/sleep.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// Returns whether MuJoCo's implicit integrators treat a force as saturated. They test the force
// after clamping.
// tie: force range, implicit
bool at_limit(double x, const double range[2]) { return x <= range[0] || x >= range[1]; }

// Returns whether the step is discontinuous where the force of this law reaches its range. The
// implicit integrators omit the slopes of a force at its range, including the end of the range. At
// the end the derivative is that of the outside, where the step is continuous.          (ACT-12)
template <class T>
bool jumps(const ModelView& m, const ForceLaw<T>& law) {
  return is_implicit(m) && (law.damping.v != 0 || law.stiffness.v != 0);
}

// An actuator with one output, from its force law to its force. T is Number or LinearNumber.
template <class T>
struct Output {
  int actuator;
  ForceLaw<T> law;
  double force;  // after tendon scaling and clamping
  bool clamped;  // by its force range
};

// If the actuators of a tendon together exceed its force range, their forces are scaled to the
// limit. The sum of the forces along the tendon then changes by
//   ratio sum_j ([j not clamped] gear_j - mean) df_j,
//   mean = sum_{j not clamped} gear_j f_j / total.                                       (ACT-4)
struct Scaling {
  double total;    // sum of the forces before scaling
  double exerted;  // sum of the forces after scaling and clamping
  bool scaled;     // the range is exceeded
  double ratio;    // limit / total if scaled; zero if the tendon may only pull
  double mean;
  bool jumps;  // the step is discontinuous at the range, because of one of the actuators
};

double gear_of(const ModelView& m, int actuator) {
  return m.actuator_gear[6 * m.actuator_outadr[actuator]];
}

bool on_tendon(const ModelView& m, int actuator) {
  return m.actuator_trntype[actuator] == transmission::kTendon;
}

// The same as at_limit for a sum of forces. It reaches its range only up to rounding, for which
// MuJoCo allows 1e-10.
bool near_limit(double x, const double range[2]) {
  constexpr double kSlack = 1e-10;
  // tie: tendon force range, implicit
  return x <= range[0] + kSlack * std::abs(range[0]) || x >= range[1] - kSlack * std::abs(range[1]);
}

// Returns whether the implicit integrators use the force ranges of joints and tendons. Before 4.0
// they use only those of actuators.
bool knows_all_ranges() { return engine().version >= kMuJoCo400; }

bool actuated(const ModelView& m) {
  return m.nactuator > 0 && !(m.opt.disableflags & disable::kActuation);
}

// Returns whether the actuator exerts no force.
bool is_idle(const ModelView& m, const DataView& d, int actuator) {
  return actuator_disabled(m, actuator) || element_asleep(m, d, object::kActuator, actuator);
}

// Calls visit(actuator) for the enabled and awake actuators with one output.
template <class F>
void visit_single(const ModelView& m, const DataView& d, F visit) {
  for (int a = 0; actuated(m) && a < m.nactuator; a++) {
    if (!is_idle(m, d, a) && m.actuator_gaintype[a] != gain::kSO3) visit(a);
  }
}

template <class T>
ForceLaw<T> force_law(const ModelView& m, const DataView& d, int actuator) {
  if constexpr (std::is_same_v<T, LinearNumber>) {
    return linear_force_law<T>(m, d, actuator);
  } else {
    return actuator_force_law<T>(m, d, actuator);
  }
}

template <class T>
Output<T> unlimited_output(const ModelView& m, const DataView& d, int actuator) {
  Output<T> o{actuator, force_law<T>(m, d, actuator), 0, false};
  o.force = o.law.force.v;
  return o;
}

// Scales the force of an actuator on an overloaded tendon, and clamps it to its range.
template <class T>
void limit_force(const ModelView& m, const Scaling* scaling, Output<T>& o) {
  if (on_tendon(m, o.actuator)) {
    const Scaling& s = scaling[m.actuator_trnid[2 * o.actuator]];
    if (s.scaled) o.force *= s.ratio;
  }
  if (!m.actuator_forcelimited[o.actuator]) return;
  const double* range = m.actuator_forcerange + 2 * o.actuator;
  // tie: force range
  o.clamped = outside(o.force, range) || (jumps(m, o.law) && at_limit(o.force, range));
  o.force = clamp(o.force, range);
}

// Returns the scaling of every tendon. It is all zero for a tendon without a range.
Scaling* tendon_scaling(const ModelView& m, const DataView& d, Arena& arena) {
  Scaling* scaling = arena.zeros<Scaling>(m.ntendon);
  bool limited = false;
  for (int t = 0; t < m.ntendon && !limited; t++) limited = m.tendon_actfrclimited[t];
  if (!limited) return scaling;

  // sum of the forces on each tendon
  using Summand = Output<Number>;
  Summand* outputs = arena.take<Summand>(m.nactuator);
  int count = 0;
  visit_single(m, d, [&](int a) {
    const int t = m.actuator_trnid[2 * a];
    if (!on_tendon(m, a) || !m.tendon_actfrclimited[t]) return;
    const Summand& o = *new (outputs + count++) Summand(unlimited_output<Number>(m, d, a));
    scaling[t].total += o.force;
    scaling[t].jumps |= knows_all_ranges() && jumps(m, o.law);
  });
  // scale of tendons beyond their range
  for (int t = 0; t < m.ntendon; t++) {
    const double *range = m.tendon_actfrcrange + 2 * t, total = scaling[t].total;
    if (!total) continue;
    // tie: tendon force range
    if (outside(total, range) || (scaling[t].jumps && near_limit(total, range))) {
      scaling[t].scaled = true;
      scaling[t].ratio = clamp(total, range) / total;
    }
  }
  // sums after scaling and clamping
  for (int k = 0; k < count; k++) {
    Summand& o = outputs[k];
    limit_force(m, scaling, o);
    Scaling& s = scaling[m.actuator_trnid[2 * o.actuator]];
    s.exerted += o.force;
    if (s.scaled && !o.clamped) s.mean += gear_of(m, o.actuator) * o.law.force.v / s.total;
  }
  return scaling;
}

template <class T>
Output<T> limited_output(const ModelView& m, const DataView& d, const Scaling* scaling,
                         int actuator) {
  Output<T> o = unlimited_output<T>(m, d, actuator);
  limit_force(m, scaling, o);
  return o;
}

bool at_joint_limit(const ModelView& m, const DataView& d, int actuator) {
  int trn = m.actuator_trntype[actuator], id = m.actuator_trnid[2 * actuator];
  bool on_joint = trn == transmission::kJoint || trn == transmission::kJointInParent;
  if (!on_joint || !m.jnt_actfrclimited[id]) return false;
  // tie: joint force range, implicit
  return at_limit(d.qfrc_actuator[m.jnt_dofadr[id]], m.jnt_actfrcrange + 2 * id);
}

// The terms of an actuator in the matrix of an implicit integrator: the slopes of its force law,
// and the friction of a motor. Before 4.0 both are omitted if the actuator is at its force range.
// Since 4.0 both are omitted if its joint is at its range; the slopes alone are omitted if the
// actuator or its tendon is at its range.                                                (ACT-6)
struct ImplicitTerms {
  bool slopes, friction;
};
template <class T>
ImplicitTerms implicit_terms(const ModelView& m, const DataView& d, const Output<T>& o,
                             const Scaling* scaling) {
  const int a = o.actuator, id = m.actuator_trnid[2 * a];
  const bool limited = m.actuator_forcelimited[a];
  const double* range = m.actuator_forcerange + 2 * a;
  if (!knows_all_ranges()) {
    const bool in = !limited || !at_limit(o.force + o.law.mechanical.v, range);
    return {in, in};
  }
  if (at_joint_limit(m, d, a)) return {false, false};
  // MuJoCo tests the force of a motor before its tendon scales it
  const bool motor = m.actuator_gaintype[a] == gain::kMotor;
  if (limited && at_limit(motor ? o.law.force.v : o.force, range)) return {false, true};
  const bool tendon_full = on_tendon(m, a) && m.tendon_actfrclimited[id] &&
                           near_limit(scaling[id].exerted, m.tendon_actfrcrange + 2 * id);
  return {!tendon_full, true};
}

// Returns the weighted parts of a force law as a force along the path of the actuator. An actuator
// on a tendon uses the path of the tendon, so the two lengths differ by the gear. The sums are
// taken only for the variables that are used, because most actuators use three of the twelve.
template <class T>
PathForce along(const ModelView& m, const ForceLaw<T>& law, const ForceWeights& w, const Path& path,
                Arena& arena) {
  const double gear = path_gear(m, w.actuator);
  auto force = [&](int i) { return w.force * law.force.d[i] + w.mechanical * law.mechanical.d[i]; };
  auto damping = [&](int i) { return w.damping * law.damping.d[i]; };
  auto stiffness = [&](int i) { return w.damping * law.stiffness.d[i]; };
  PathForce f{};
  f.path = path;
  f.force = w.force * law.force.v + w.mechanical * law.mechanical.v;
  f.dlength = gear * force(local::kLength);
  f.drate = gear * force(local::kRate);
  f.damping = w.damping * law.damping.v + w.friction * law.mechanical_damping;
  f.damping_dlength = gear * damping(local::kLength);
  f.damping_drate = gear * damping(local::kRate);
  f.stiffness = w.damping * law.stiffness.v;
  f.stiffness_dlength = gear * stiffness(local::kLength);
  f.stiffness_drate = gear * stiffness(local::kRate);

  // activations, then controls
  constexpr bool kLinear = std::is_same_v<T, LinearNumber>;  // no activation and one control
  const int acts = kLinear ? 0 : m.actuator_actnum[w.actuator];
  const int ctrls = kLinear ? 1 : m.actuator_ctrlnum[w.actuator];
  f.inputs = arena.take<InputSlope>(acts + ctrls);
  auto add_input = [&](int number, int i) {
    const InputSlope slope{number, force(i), damping(i), stiffness(i)};
    if (slope.force == 0 && slope.damping == 0 && slope.stiffness == 0) return;
    f.inputs[f.input_count++] = slope;
  };
  for (int k = 0; k < acts; k++) add_input(m.actuator_actadr[w.actuator] + k, local::kAct + k);
  for (int k = 0; k < ctrls; k++) {
    add_input(m.na + m.actuator_ctrladr[w.actuator] + k, local::kCtrl + k);
  }
  return f;
}

template <class T>
ForceWeights force_weights(const ModelView& m, const DataView& d, const Output<T>& o,
                           const Scaling* scaling) {
  const int a = o.actuator;
  const double gear = path_gear(m, a);
  ForceWeights w{.actuator = a, .force = o.clamped ? 0 : gear, .mechanical = gear};
  if (on_tendon(m, a)) {
    const Scaling& t = scaling[m.actuator_trnid[2 * a]];
    if (t.scaled) w.force = t.ratio * (w.force - t.mean);
    w.scaled = t.scaled;
  }
  w.jumps = jumps(m, o.law);
  if (is_implicit(m)) {
    const ImplicitTerms terms = implicit_terms(m, d, o, scaling);
    if (terms.slopes) w.damping = gear * gear;
    if (terms.friction) w.friction = gear * gear;
  }
  return w;
}

// Returns the contribution of an actuator to the force along its path, with limits and gear.
template <class T>
PathForce path_force(const ModelView& m, const Output<T>& o, const ForceWeights& weights,
                     const Path& path, Arena& arena) {
  PathForce f = along(m, o.law, weights, path, arena);
  f.force = path_gear(m, o.actuator) * (o.force + o.law.mechanical.v);
  return f;
}

// Returns an empty cache for the paths of tendons.
Path* no_paths(const ModelView& m, Arena& arena) {
  Path* paths = arena.take<Path>(m.ntendon);
  for (int t = 0; t < m.ntendon; t++) paths[t].n = -1;
  return paths;
}

// Sets the rates of activations to zero, for a disabled actuator.
void stop_activations(Variables<Number>& x) {
  for (Number& rate : x.act_rate) rate = 0;
  x.slewed = -1;
}

// Keeps the rates of activations, and the length of the actuator, as they were when it fell asleep.
void hold_activations(const ModelView& m, const DataView& d, int actuator, Variables<Number>& x) {
  if (m.actuator_plugin[actuator] >= 0) {
    throw Unsupported(element_name(m, object::kActuator, actuator),
                      "its plugin moves its activations although it sleeps");
  }
  for (int k = 0; k < m.actuator_actnum[actuator]; k++) {
    x.act_rate[k] = d.act_dot[m.actuator_actadr[actuator] + k];
  }
  x.length = x.length.v;
  x.rate = x.rate.v;
  x.slewed = -1;
}

// Returns whether the number depends on the length or rate of the actuator.
bool moves(const Number& x) { return x.d[local::kLength] != 0 || x.d[local::kRate] != 0; }

// Returns all activations after one step.
NextActivation* all_activations(const ModelView& m, const DataView& d, Path* tendon_paths,
                                Arena& arena) {
  NextActivation* next = arena.take<NextActivation>(m.na);
  for (int a = 0; a < m.nactuator; a++) {
    if (m.actuator_actnum[a] == 0) continue;
    Variables<Number> x = actuator_variables<Number>(m, d, a);
    if (element_asleep(m, d, object::kActuator, a)) hold_activations(m, d, a, x);
    if (actuator_disabled(m, a)) stop_activations(x);
    Number values[local::kMaxActs];
    next_activations(m, a, x, x.act_rate, values);
    for (int k = 0; k < m.actuator_actnum[a]; k++) {
      int act = m.actuator_actadr[a] + k;
      next[act] = {act, a, x.act_rate[k], values[k], {}, path_gear(m, a)};
      if (!moves(values[k]) && !moves(x.act_rate[k])) continue;
      next[act].path = transmission_path(m, d, a, tendon_paths, arena);
    }
  }
  return next;
}

// Marks the dofs of joints whose total actuator force is saturated. Returns null if there are none.
unsigned char* saturated_joints(const ModelView& m, const DataView& d, const Actuation& all,
                                Arena& arena) {
  bool limited = false;
  for (int j = 0; j < m.njnt && !limited; j++) limited = m.jnt_actfrclimited[j];
  if (!limited) return nullptr;

  // total actuator force of every dof, with gravity compensation that is part of it
  double* total = arena.zeros<double>(m.nv);
  for (int k = 0; k < all.count; k++) {
    const Path& p = all.forces[k].path;
    for (int a = 0; a < p.n; a++) total[p.dofs[a]] += p.moment[a] * all.forces[k].force;
  }
  bool gravcomp = m.flg_gravcomp && passive_enabled(m);
  unsigned char* frozen = arena.zeros<unsigned char>(m.nv);
  bool any = false;
  for (int j = 0; j < m.njnt; j++) {
    if (!m.jnt_actfrclimited[j]) continue;
    int dof = m.jnt_dofadr[j];
    if (gravcomp && m.jnt_actgravcomp[j]) total[dof] += d.qfrc_gravcomp[dof];
    // tie: joint force range
    if (outside(total[dof], m.jnt_actfrcrange + 2 * j)) frozen[dof] = any = true;
  }
  // at the end of the range the outside counts if the step is discontinuous there
  for (int k = 0; knows_all_ranges() && k < all.weight_count; k++) {
    const int a = all.weights[k].actuator;
    if (!all.weights[k].jumps || !at_joint_limit(m, d, a)) continue;
    frozen[m.jnt_dofadr[m.actuator_trnid[2 * a]]] = any = true;
  }
  return any ? frozen : nullptr;
}

}  // namespace

double path_gear(const ModelView& m, int actuator) {
  return on_tendon(m, actuator) ? gear_of(m, actuator) : 1;
}

bool pulls_tendon(const ModelView& m, int actuator, int tendon) {
  return on_tendon(m, actuator) && m.actuator_trnid[2 * actuator] == tendon;
}

ActuatorForces actuator_forces(const ModelView& m, const DataView& d, Arena& arena) {
  const Scaling* scaling = tendon_scaling(m, d, arena);
  ActuatorForces forces{arena.zeros<ActuatorForce>(m.nactuator), 0};
  Path* tendon_paths = no_paths(m, arena);
  visit_single(m, d, [&](int a) {
    const auto o = limited_output<Number>(m, d, scaling, a);
    const Path path = transmission_path(m, d, a, tendon_paths, arena);
    ActuatorForce& f = forces.force[forces.count++];
    f.actuator = a;
    f.slope = o.clamped ? 0 : 1;
    if (on_tendon(m, a)) {
      const Scaling& t = scaling[m.actuator_trnid[2 * a]];
      if (t.scaled) f.slope *= t.ratio, f.share = o.law.force.v / t.total;
    }
    f.implicit_share = implicit_terms(m, d, o, scaling).slopes;
    f.unlimited = along(m, o.law, {.actuator = a, .force = 1}, path, arena);
    f.mechanical = along(m, o.law, {.actuator = a, .mechanical = 1}, path, arena);
  });
  return forces;
}

Actuation no_actuation(const ModelView& m, Arena& arena) {
  unsigned char* all = m.flg_gravcomp ? arena.take<unsigned char>(m.nv) : nullptr;
  if (all) std::memset(all, 1, m.nv);
  return {nullptr, 0, nullptr, 0, all, nullptr, nullptr};
}

Actuation actuation(const ModelView& m, const DataView& d, Arena& arena) {
  if (!actuated(m)) return no_actuation(m, arena);
  const Scaling* scaling = tendon_scaling(m, d, arena);
  Path* tendon_paths = no_paths(m, arena);
  ForceWeights* weights = arena.take<ForceWeights>(m.nactuator);
  Coupling* dofs = arena.zeros<Coupling>(m.nactuator);
  Actuation all{arena.take<PathForce>(3 * m.nactuator), 0, weights, 0, nullptr, dofs, nullptr};

  // actuators with one output
  auto add = [&]<class T>(int a, const Output<T>& o) {
    const Path path = transmission_path(m, d, a, tendon_paths, arena);
    // constructed in place, because copying what was just written waits for the memory
    const ForceWeights& w =
        *new (weights + all.weight_count++) ForceWeights(force_weights(m, d, o, scaling));
    new (all.forces + all.count++) PathForce(path_force(m, o, w, path, arena));
    dofs[a] = {path.dofs, path.n};
  };
  visit_single(m, d, [&](int a) {
    if (force_law_is_linear(m, a)) {
      add(a, limited_output<LinearNumber>(m, d, scaling, a));
    } else {
      add(a, limited_output<Number>(m, d, scaling, a));
    }
  });
  // orientation servos, with three outputs each
  for (int a = 0; a < m.nactuator; a++) {
    if (is_idle(m, d, a) || m.actuator_gaintype[a] != gain::kSO3) continue;
    PathForce* forces = all.forces + all.count;
    orientation_forces(m, d, a, actuator_variables<Number>(m, d, a), forces, arena);
    dofs[a] = {forces[0].path.dofs, forces[0].path.n};
    all.count += 3;
  }
  all.frozen = saturated_joints(m, d, all, arena);
  all.next = all_activations(m, d, tendon_paths, arena);
  return all;
}

bool actuator_disabled(const ModelView& m, int actuator) {
  int group = m.actuator_group[actuator];
  return group >= 0 && group <= 30 && (m.opt.disableactuator & (1 << group));
}

const char* actuator_refusal(const ModelView& m, int a) {
  const int gain_type = m.actuator_gaintype[a];
  if (m.opt.integrator == integrator::kDiscrete &&
      (gain_type == gain::kMotor || gain_type == gain::kSO3)) {
    return "its type is not supported with the discrete integrator";
  }
  if (m.actuator_plugin[a] >= 0 && actuator_disabled(m, a)) {
    return "MuJoCo applies the force of an actuator plugin although its group is disabled";
  }
  if (m.actuator_delay[a] != 0) {
    if (m.actuator_plugin[a] >= 0) return "the control of a plugin is delayed";
    if (m.opt.integrator == integrator::kRK4) return "RK4 reads its delayed control at three times";
  }
  if (const char* reason = activation_refusal(m, a)) return reason;
  if (const char* reason = force_law_refusal(m, a)) return reason;
  return transmission_refusal(m, a);
}

}  // namespace mujacobian

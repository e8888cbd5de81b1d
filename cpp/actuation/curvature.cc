#include "actuation/curvature.h"

#include <algorithm>
#include <new>

#include "actuation/force_law.h"
#include "actuation/transmission.h"
#include "actuation/transmission_curvature.h"
#include "forces/tendon.h"
#include "forces/tendon_curvature.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// The variables of an actuator that its force law depends on, as indices of a CurvedNumber, with
// their lengths per length of the path.
struct LocalVariables {
  int count;
  int index[local::kCount];
  double gear[local::kCount];
  int* inputs;
};

LocalVariables local_variables(const ModelView& m, int actuator, Arena& arena) {
  const int acts = m.actuator_actnum[actuator], ctrls = m.actuator_ctrlnum[actuator];
  const double gear = path_gear(m, actuator);
  LocalVariables x{2, {local::kLength, local::kRate}, {gear, gear}, arena.take<int>(acts + ctrls)};
  auto add = [&](int input, int index) {
    x.inputs[x.count - 2] = input;
    x.index[x.count] = index;
    x.gear[x.count++] = 1;
  };
  for (int k = 0; k < acts; k++) add(m.actuator_actadr[actuator] + k, local::kAct + k);
  for (int k = 0; k < ctrls; k++) add(m.na + m.actuator_ctrladr[actuator] + k, local::kCtrl + k);
  return x;
}

// Returns the second derivatives of a number with respect to these variables.
double* second_derivatives(const LocalVariables& x, const CurvedNumber& number, Arena& arena) {
  double* h = arena.take<double>(x.count * x.count);
  for (int a = 0; a < x.count; a++)
    for (int b = 0; b < x.count; b++) {
      h[a * x.count + b] = x.gear[a] * x.gear[b] * number.second(x.index[a], x.index[b]);
    }
  return h;
}

// Returns whether the next activations are linear in the activations and controls of the actuator,
// and depend on nothing else.
bool dynamics_are_linear(const ModelView& m, int actuator) {
  const int type = m.actuator_dyntype[actuator];
  return m.actuator_plugin[actuator] < 0 && m.actuator_gaintype[actuator] != gain::kSO3 &&
         (type == dynamics::kIntegrator || type == dynamics::kFilter ||
          type == dynamics::kFilterExact);
}

// Returns the path of an actuator with one output.
Path actuator_path(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  if (m.actuator_trntype[actuator] == transmission::kTendon) {
    return tendon_path(m, d, m.actuator_trnid[2 * actuator], arena);
  }
  return transmission_path(m, d, actuator, nullptr, arena);
}

// Returns whether the number depends on the length or the rate of the actuator, the first two
// variables.
bool moves(const CurvedNumber& x) {
  static_assert(local::kLength == 0 && local::kRate == 1);
  if (x.d[local::kLength] != 0 || x.d[local::kRate] != 0 || x.h[0] != 0) return true;
  for (int k = 1, row = 1; k < local::kCount; k++, row += k) {
    if (x.h[row] != 0 || x.h[row + 1] != 0) return true;
  }
  return false;
}

// A tendon beyond its force range, with the slopes of the sum of the forces of its actuators before
// scaling, and of a sum of their forces after it, by the variables of all of them.
struct ScaledTendon {
  int count;            // variables: the length, the rate, the inputs of all actuators
  int* inputs;          // (count - 2)
  double total;         // sum of the forces
  double *sum, *along;  // (count), slopes
  const Path* path;
};

ScaledTendon scaled_tendon(const ModelView& m, const DataView& d, const Actuation& actuation,
                           int tendon, const double* weights, Arena& arena) {
  const int room = 2 + actuation.weight_count * local::kCount;
  ScaledTendon t{
      2, arena.take<int>(room), 0, arena.zeros<double>(room), arena.zeros<double>(room), nullptr};
  for (int k = 0; k < actuation.weight_count; k++) {
    const ForceWeights& w = actuation.weights[k];
    if (!w.scaled || !pulls_tendon(m, w.actuator, tendon)) continue;
    const Number force = actuator_force_law<Number>(m, d, w.actuator).force;
    const LocalVariables x = local_variables(m, w.actuator, arena);
    t.total += force.v;
    t.path = &actuation.forces[k].path;
    for (int a = 0; a < x.count; a++) {
      const int at = a < 2 ? a : t.count++;
      if (a >= 2) t.inputs[at - 2] = x.inputs[a - 2];
      const double slope = x.gear[a] * force.d[x.index[a]];
      t.sum[at] += slope, t.along[at] += weights[k] * slope;
    }
  }
  return t;
}

// Returns whether force k is the first one on a tendon that scales its forces.
bool begins_scaled_tendon(const ModelView& m, const Actuation& actuation, int k) {
  const ForceWeights* all = actuation.weights;
  if (!all[k].scaled) return false;
  const int tendon = m.actuator_trnid[2 * all[k].actuator];
  for (int i = 0; i < k; i++) {
    if (all[i].scaled && pulls_tendon(m, all[i].actuator, tendon)) return false;
  }
  return true;
}

// Returns the second derivatives of a part of the force of an actuator before any limit.
PathCurvature part_curvature(const ModelView& m, const DataView& d, int actuator,
                             const PathForce& force, CurvedNumber ForceLaw<CurvedNumber>::* part,
                             Arena& arena) {
  PathCurvature c{&force, 0, nullptr, nullptr, nullptr, actuator_source(m, actuator)};
  if (force_law_is_linear(m, actuator)) return c;
  const auto law = actuator_force_law<CurvedNumber>(m, d, actuator);
  const LocalVariables x = local_variables(m, actuator, arena);
  c.count = x.count, c.inputs = x.inputs;
  c.force = second_derivatives(x, law.*part, arena);
  return c;
}

}  // namespace

PathCurvature scaling_curvature(const ModelView& m, const DataView& d, const Actuation& actuation,
                                int tendon, const double* weights, Arena& arena) {
  const ScaledTendon t = scaled_tendon(m, d, actuation, tendon, weights, arena);
  PathForce* none = arena.zeros<PathForce>(1);
  none->path = *t.path;
  const int n = t.count;
  double* second = arena.take<double>(n * n);
  for (int a = 0; a < n; a++)
    for (int b = 0; b < n; b++) {
      second[a * n + b] = -(t.sum[a] * t.along[b] + t.along[a] * t.sum[b]) / t.total;
    }
  return {none, n, t.inputs, second, arena.zeros<double>(n * n), tendon_source(m, tendon)};
}

PathCurvature unlimited_curvature(const ModelView& m, const DataView& d, const ActuatorForce& f,
                                  Arena& arena) {
  return part_curvature(m, d, f.actuator, f.unlimited, &ForceLaw<CurvedNumber>::force, arena);
}

PathCurvature mechanical_curvature(const ModelView& m, const DataView& d, const ActuatorForce& f,
                                   Arena& arena) {
  return part_curvature(m, d, f.actuator, f.mechanical, &ForceLaw<CurvedNumber>::mechanical, arena);
}

int actuator_curvatures(const ModelView& m, const DataView& d, const Actuation& actuation,
                        PathCurvature* out, Arena& arena) {
  double* weights = arena.take<double>(actuation.weight_count);
  for (int k = 0; k < actuation.weight_count; k++) weights[k] = actuation.weights[k].force;
  int count = 0;
  for (int k = 0; k < actuation.weight_count; k++) {
    const ForceWeights& w = actuation.weights[k];
    PathCurvature c{actuation.forces + k,          0, nullptr, nullptr, nullptr,
                    actuator_source(m, w.actuator)};
    if (!force_law_is_linear(m, w.actuator)) {
      const auto law = actuator_force_law<CurvedNumber>(m, d, w.actuator);
      const LocalVariables x = local_variables(m, w.actuator, arena);
      c.count = x.count, c.inputs = x.inputs;
      c.force = second_derivatives(x, w.force * law.force + w.mechanical * law.mechanical, arena);
      c.damping = second_derivatives(x, w.damping * law.damping, arena);
    }
    if (c.count || is_curved(c.source)) out[count++] = c;
    if (begins_scaled_tendon(m, actuation, k)) {
      const int tendon = m.actuator_trnid[2 * w.actuator];
      out[count++] = scaling_curvature(m, d, actuation, tendon, weights, arena);
    }
  }
  return count;
}

const double* stiffness_curvature(const ModelView& m, const DataView& d, const Actuation& actuation,
                                  const PathCurvature& c, Arena& arena) {
  if (c.count == 0) return nullptr;
  const ForceWeights& w = actuation.weights[c.of - actuation.forces];
  const auto law = actuator_force_law<CurvedNumber>(m, d, w.actuator);
  return second_derivatives(local_variables(m, w.actuator, arena), w.damping * law.stiffness,
                            arena);
}

bool is_curved_actuator(const ModelView& m, int actuator) {
  return !force_law_is_linear(m, actuator) || is_curved(actuator_source(m, actuator));
}

PathSource actuator_source(const ModelView& m, int actuator) {
  const int trn = m.actuator_trntype[actuator], id = m.actuator_trnid[2 * actuator];
  if (trn == transmission::kTendon) return tendon_source(m, id);
  const bool curved = has_moving_moment(m, actuator) || m.jnt_type[id] == joint::kBall;
  return {-1, curved ? actuator : -1};
}

PathCurvature length_curvature(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  PathForce* length = arena.zeros<PathForce>(1);
  length->path = actuator_path(m, d, actuator, arena);
  length->dlength = path_gear(m, actuator);
  return {length, 0, nullptr, nullptr, nullptr, actuator_source(m, actuator)};
}

int activation_curvatures(const ModelView& m, const DataView& d, const Actuation& actuation,
                          ActivationValue of, ActivationCurvature* out, Arena& arena) {
  int count = 0;
  for (int a = 0; actuation.next && a < m.nactuator; a++) {
    if (m.actuator_actnum[a] == 0 || actuator_disabled(m, a) || dynamics_are_linear(m, a)) continue;
    const auto x = actuator_variables<CurvedNumber>(m, d, a);
    CurvedNumber value[local::kMaxActs];
    if (of == ActivationValue::kNext) {
      next_activations(m, a, x, x.act_rate, value);
    } else {
      std::copy(x.act_rate, x.act_rate + m.actuator_actnum[a], value);
    }
    Path path{};
    PathBend bend{nullptr, nullptr};
    for (int k = 0; k < m.actuator_actnum[a]; k++) {
      if (moves(value[k]) && !path.dofs) {
        path = actuator_path(m, d, a, arena);
        bend = transmission_bend(m, d, a, d.qvel, arena);
      }
      new (out + count++)
          ActivationCurvature{m.actuator_actadr[a] + k, a, value[k], path, path_gear(m, a), bend};
    }
  }
  return count;
}

}  // namespace mujacobian

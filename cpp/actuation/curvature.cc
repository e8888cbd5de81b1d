#include "actuation/curvature.h"

#include <new>

#include "actuation/force_law.h"
#include "actuation/transmission.h"
#include "forces/tendon.h"
#include "layout/enums.h"
#include "spatial/rotation.h"

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

// Returns d2l/dq2 of the path of an actuator whose moments are constant, (n, n) over its dofs; null
// if it is zero.
const double* path_length_curvature(const ModelView& m, const DataView& d, int actuator,
                                    Arena& arena) {
  const int trn = m.actuator_trntype[actuator], j = m.actuator_trnid[2 * actuator];
  if (trn != transmission::kJoint || m.jnt_type[j] != joint::kBall) return nullptr;
  // l = gear . log(q)                                                                     (TRN-2)
  const double unit[4] = {1, 0, 0, 0};
  const Vec3 angle = quaternion_difference(d.qpos + m.jnt_qposadr[j], unit);
  const double* gear = m.actuator_gear + 6 * m.actuator_outadr[actuator];
  Mat3* curvature = arena.take<Mat3>(1);
  *curvature = log_curvature(angle, load3(gear));
  return curvature->m;
}

// Returns the path of an actuator with constant moments.
Path constant_path(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  if (m.actuator_trntype[actuator] == transmission::kTendon) {
    return tendon_path(m, d, m.actuator_trnid[2 * actuator], arena);
  }
  return transmission_path(m, d, actuator, nullptr, arena);
}

}  // namespace

int actuator_curvatures(const ModelView& m, const DataView& d, const Actuation& actuation,
                        PathCurvature* out, Arena& arena) {
  int count = 0;
  for (int k = 0; k < actuation.weight_count; k++) {
    const ForceWeights& w = actuation.weights[k];
    PathCurvature c{actuation.forces + k,
                    0,
                    nullptr,
                    nullptr,
                    nullptr,
                    path_length_curvature(m, d, w.actuator, arena)};
    if (!force_law_is_linear(m, w.actuator)) {
      const auto law = actuator_force_law<CurvedNumber>(m, d, w.actuator);
      const LocalVariables x = local_variables(m, w.actuator, arena);
      c.count = x.count, c.inputs = x.inputs;
      c.force = second_derivatives(x, w.force * law.force + w.mechanical * law.mechanical, arena);
      c.damping = second_derivatives(x, w.damping * law.damping, arena);
    }
    if (c.count || c.length) out[count++] = c;
  }
  return count;
}

PathCurvature length_curvature(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  PathForce* length = arena.zeros<PathForce>(1);
  length->path = constant_path(m, d, actuator, arena);
  length->dlength = path_gear(m, actuator);
  return {length, 0, nullptr, nullptr, nullptr, path_length_curvature(m, d, actuator, arena)};
}

int activation_curvatures(const ModelView& m, const DataView& d, const Actuation& actuation,
                          ActivationCurvature* out, Arena& arena) {
  int count = 0;
  for (int a = 0; actuation.next && a < m.nactuator; a++) {
    if (m.actuator_actnum[a] == 0 || actuator_disabled(m, a) || dynamics_are_linear(m, a)) continue;
    const auto x = actuator_variables<CurvedNumber>(m, d, a);
    CurvedNumber next[local::kMaxActs];
    next_activations(m, a, x, x.act_rate, next);
    const Path path = constant_path(m, d, a, arena);
    const double* length = path_length_curvature(m, d, a, arena);
    for (int k = 0; k < m.actuator_actnum[a]; k++) {
      new (out + count++)
          ActivationCurvature{m.actuator_actadr[a] + k, a, next[k], path, path_gear(m, a), length};
    }
  }
  return count;
}

}  // namespace mujacobian

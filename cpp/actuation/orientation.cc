#include "actuation/orientation.h"

#include "actuation/transmission.h"
#include "forces/implicit.h"
#include "layout/enums.h"
#include "spatial/quaternion.h"
#include "spatial/rotation.h"

namespace mujacobian {
namespace {

// A target rotation, and its rotation in its own axes per unit of each variable of the actuator.
struct Target {
  double quaternion[4];
  Vec3 turn[local::kCount];
};

// The target exp(u): turn = Jr(u) du                                                     (ACT-8)
Target expmap_target(const Number u[3]) {
  Target target;
  Vec3 w = {u[0].v, u[1].v, u[2].v};
  Mat3 jacobian = right_jacobian(w);
  store_quaternion(target.quaternion, quaternion_exp(w));
  for (int i = 0; i < local::kCount; i++) {
    target.turn[i] = jacobian * Vec3{u[0].d[i], u[1].d[i], u[2].d[i]};
  }
  return target;
}

// The target u / |u|: turn = 2 Im(conj(u) du) / |u|^2. The zero quaternion means no rotation.
// (ACT-9)
Target quaternion_target(const Number u[4]) {
  Target target{{1, 0, 0, 0}, {}};
  double square = 0;
  for (int k = 0; k < 4; k++) square += u[k].v * u[k].v;
  // tie: setpoint of a zero quaternion
  if (square < kMinVal * kMinVal) return target;
  Quaternion q = {u[0].v, {u[1].v, u[2].v, u[3].v}};
  store_quaternion(target.quaternion, normalized(q));
  for (int i = 0; i < local::kCount; i++) {
    Quaternion dq = {u[0].d[i], {u[1].d[i], u[2].d[i], u[3].d[i]}};
    target.turn[i] = (2 / square) * (conjugate(q) * dq).v;
  }
  return target;
}

// Returns the target from the controls or activations of the actuator.
Target target_of(const ModelView& m, int actuator, const Variables<Number>& x) {
  if (m.actuator_ctrlspec[actuator] == chart::kQuaternion) return quaternion_target(x.ctrl);
  if (m.actuator_dyntype[actuator] == dynamics::kNone) return expmap_target(x.ctrl);
  if (!m.actuator_actearly[actuator]) return expmap_target(x.act);
  Number next[3];
  for (int k = 0; k < 3; k++) next[k] = next_activation(m, actuator, x, k, x.act_rate[k]);
  return expmap_target(next);
}

// The limit of the norm of the torque, F = limit F0 / |F0|, with the derivative
// dF = (limit / |F0|) (I - n n^T) dF0.                                                 (ACT-10)
struct Limit {
  bool active;
  double scale;  // of the torque
  Mat3 project;  // dF/dF0
};

// `jumps`: the step is discontinuous at the limit, and a torque at its limit counts as limited.
// (ACT-12)
Limit norm_limit(const ModelView& m, int actuator, Vec3 torque, bool jumps) {
  Limit limit{false, 1, identity3()};
  if (!m.actuator_forcelimited[actuator]) return limit;
  double most = m.actuator_forcerange[2 * actuator + 1], size = norm(torque);
  // tie: torque of an orientation servo
  if (size <= most && !jumps) return limit;
  limit.active = true;
  limit.scale = most / size;
  double n[3] = {torque.x / size, torque.y / size, torque.z / size};
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) limit.project(a, b) = limit.scale * ((a == b) - n[a] * n[b]);
  return limit;
}

// Returns whether the implicit integrators omit the damping, because the norm of the torque reaches
// its limit. The norm of a clamped torque is equal to the limit up to rounding, so that the last
// bit decides. This function therefore avoids fused multiply-adds.
bool damping_is_omitted(const ModelView& m, const DataView& d, int actuator) {
  if (!m.actuator_forcelimited[actuator]) return false;
  const double* f = d.actuator_force + m.actuator_outadr[actuator];
  volatile double x = f[0] * f[0], y = f[1] * f[1], z = f[2] * f[2];
  // tie: torque of an orientation servo, implicit
  return std::sqrt(x + y + z) >= m.actuator_forcerange[2 * actuator + 1];
}

}  // namespace

void orientation_forces(const ModelView& m, const DataView& d, int actuator,
                        const Variables<Number>& x, PathForce forces[3], Arena& arena) {
  const OrientationPath path = orientation_path(m, d, actuator, arena);
  const int out = m.actuator_outadr[actuator], n = path.axis[0].n;
  const double kp = m.actuator_gainprm[kNGain * actuator];
  const double* prm = m.actuator_biasprm + kNBias * actuator;

  // torque F0 = kp e + b + kv (m v), e = log(current^-1 target)                           (ACT-11)
  double current[4];
  store_quaternion(current, quaternion_exp(load3(d.actuator_length + out)));
  const Target target = target_of(m, actuator, x);
  const Vec3 error = quaternion_difference(target.quaternion, current);
  const Vec3 torque =
      kp * error + Vec3{prm[0], prm[0], prm[0]} + prm[2] * load3(d.actuator_velocity + out);

  // its limit, and the damping term of the implicit integrators
  const bool omitted = damping_is_omitted(m, d, actuator);
  const double damping = omitted ? 0 : prm[2];
  const Limit limit = norm_limit(m, actuator, torque, omitted && prm[2] != 0 && is_implicit(m));

  // de = Jr^-1(e) (turn of the target) - Jr^-T(e) (turn of the current orientation)
  const Mat3 log_rate = right_jacobian_inverse(error);
  Mat3 back;
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) back(a, b) = -kp * log_rate(b, a);
  const Mat3 with_target = limit.project * (kp * log_rate), with_current = limit.project * back;

  // each component of the torque is a force along its own path
  double force[3];
  store3(force, limit.scale * torque);
  RateSlope* rates = arena.take<RateSlope>(9);
  Path* paths = arena.take<Path>(3);
  const int acts = m.actuator_actnum[actuator], ctrls = m.actuator_ctrlnum[actuator];
  for (int k = 0; k < 3; k++) {
    // derivative of component k with respect to positions, by the current orientation
    double* dforce = arena.take<double>(n);
    for (int j = 0; j < n; j++) {
      dforce[j] = 0;
      for (int o = 0; o < 3; o++) dforce[j] += with_current(k, o) * path.tangent[o * n + j];
    }
    paths[k] = path.axis[k];
    paths[k].dlength = dforce;  // the "length" is the force itself as a function of position

    // the force and its rate; the limit couples the rates of the three components
    PathForce& f = forces[k] = {};
    f.path = paths[k];
    f.force = force[k];
    f.dlength = 1;
    f.drate = prm[2] * limit.project(k, k);
    f.others = rates + 3 * k;
    for (int o = 0; o < 3 && limit.active; o++) {
      if (o != k) rates[3 * k + f.other_count++] = {paths + o, prm[2] * limit.project(k, o)};
    }

    // activations and controls, by the target
    f.inputs = arena.take<InputSlope>(acts + ctrls);
    auto add_input = [&](int number, int i) {
      const Vec3& t = target.turn[i];
      double slope = with_target(k, 0) * t.x + with_target(k, 1) * t.y + with_target(k, 2) * t.z;
      f.inputs[f.input_count++] = {number, slope, 0, 0};
    };
    for (int i = 0; i < acts; i++) {
      add_input(m.actuator_actadr[actuator] + i, local::kAct + i);
    }
    for (int i = 0; i < ctrls; i++) {
      add_input(m.na + m.actuator_ctrladr[actuator] + i, local::kCtrl + i);
    }
    f.damping = damping;
  }
}

}  // namespace mujacobian

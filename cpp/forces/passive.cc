#include "forces/passive.h"

#include "forces/spring_bend.h"
#include "layout/enums.h"
#include "spatial/rotation.h"

namespace mujacobian {

Poly joint_stiffness(const ModelView& m, int joint) {
  const double* p = m.jnt_stiffnesspoly + kNPoly * joint;
  return {m.jnt_stiffness[joint], {p[0], p[1]}};
}

namespace {

// Calls f(actuator, gear^2) for every actuator that adds damping or armature to a joint or tendon.
// `single` is MuJoCo's jnt_actuatorid or tendon_actuatorid: an index, -1 for no actuator, or a
// smaller number for several actuators.
template <class F>
void visit_actuators(const ModelView& m, int single, bool tendon, int id, F f) {
  if (single == -1) return;
  int first = single >= 0 ? single : 0, last = single >= 0 ? single + 1 : m.nactuator;
  for (int a = first; a < last; a++) {
    int trn = m.actuator_trntype[a];
    bool fits = tendon ? trn == transmission::kTendon
                       : trn == transmission::kJoint || trn == transmission::kJointInParent;
    if (single < -1 && (!fits || m.actuator_trnid[2 * a] != id)) continue;
    double gear = m.actuator_gear[6 * m.actuator_outadr[a]];
    f(a, gear * gear);
  }
}

Poly add_actuator_damping(const ModelView& m, Poly poly, int single, bool tendon, int id) {
  visit_actuators(m, single, tendon, id, [&](int a, double gear2) {
    poly.linear += gear2 * m.actuator_damping[a];
    for (int k = 0; k < kNPoly; k++) {
      poly.p[k] += gear2 * m.actuator_dampingpoly[kNPoly * a + k];
    }
  });
  return poly;
}

// Returns k(r) I + k'(r)/r e e^T. The force of a spring with displacement e and r = |e| is -k(r) e,
// so this is minus its derivative with respect to e.                                       (PAS-2)
Mat3 radial_stiffness(const Poly& k, Vec3 e) {
  double r = norm(e);
  // tie: ball spring at rest
  double radial = r > 0 ? (k.p[0] + 2 * k.p[1] * r) / r : 0;
  double v[3] = {e.x, e.y, e.z};
  Mat3 s;
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) s(a, b) = radial * v[a] * v[b] + (a == b ? k.coefficient(r) : 0);
  return s;
}

void subtract_block(const DofRows& residual, int dof, const Mat3& block) {
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) residual.dq(dof + a, dof + b) -= block(a, b);
}

// A spring with a smaller displacement is at rest, up to rounding errors of quaternions.
constexpr double kAtRest = 1e-12;

// Returns the slope of the spring along its displacement e, which the metric uses for all
// directions.
SpringSlope radial_slope(const Poly& k, int dof, Vec3 e) {
  SpringSlope s{dof, 3, 0, {0, 0, 0}};
  double r = norm(e), slope = k.slope(r);
  if (slope <= 0) return s;
  s.stiffness = slope;
  // tie: ball spring at rest in the metric
  if (r >= kAtRest) store3(s.gradient, (k.curvature(r) / r) * e);
  return s;
}

// Returns the second derivative of this slope with respect to e. At rest that of the quadratic part
// of the spring does not exist; it is set to zero.                                        (HES-67)
Mat3 radial_bend(const Poly& k, Vec3 e) {
  const double r = norm(e);
  if (!k.slope_acts(r)) return {};
  const Mat3 bend = k.third() * identity3();
  if (r < kAtRest) return bend;
  const Vec3 n = (1 / r) * e;
  return bend + (2 * k.p[0] / r) * (identity3() + -1.0 * outer(n, n));
}

// Position and rest position of the spring of a joint.
struct SpringState {
  const double *qpos, *rest;
};
SpringState spring_state(const ModelView& m, const DataView& d, int j) {
  const int adr = m.jnt_qposadr[j];
  const bool plastic = is_plastic(m.jnt_plasticadr, j);
  return {d.qpos + adr, plastic ? d.plastic + m.jnt_plasticadr[j] : m.qpos_spring + adr};
}

// Returns the second derivative of mu . k(r) e with respect to e.                         (HES-14)
Mat3 radial_curvature(const Poly& k, Vec3 e, Vec3 mu) {
  const double r = norm(e), along = dot(mu, e);
  // at rest the quadratic part of a spring has no second derivative: it is set to zero
  const bool moved = r >= kAtRest;
  const double radial = moved ? k.p[0] / r + 2 * k.p[1] : 2 * k.p[1];
  const double bend = moved ? -k.p[0] / (r * r * r) : 0;
  return radial * (outer(mu, e) + outer(e, mu) + along * identity3()) + bend * along * outer(e, e);
}

// The same with respect to the exponential coordinates of the rotation e.                 (HES-14)
Mat3 turned_curvature(const Poly& k, Vec3 e, Vec3 mu) {
  const Mat3 inverse = right_jacobian_inverse(e);
  return transposed(inverse) * radial_curvature(k, e, mu) * inverse +
         log_curvature(e, radial_stiffness(k, e) * mu);
}

void subtract_block(const QuadraticForm& form, int dof, const Mat3& block) {
  for (int a = 0; a < 3; a++)
    for (int b = a; b < 3; b++) {
      form.add(dof, form.q_column(dof + a), form.q_column(dof + b), -block(a, b));
    }
}

void add_spring_hessians(const ModelView& m, const DataView& d, const double* mu,
                         const QuadraticForm& form) {
  for (int j = 0; j < m.njnt; j++) {
    const Poly k = joint_stiffness(m, j);
    if (k.zero()) continue;
    int dof = m.jnt_dofadr[j], type = m.jnt_type[j];
    auto [qpos, rest] = spring_state(m, d, j);
    if (type == joint::kSlide || type == joint::kHinge) {
      const int column = form.q_column(dof);
      form.add(dof, column, column, -mu[dof] * k.curvature(qpos[0] - rest[0]));
      continue;
    }
    if (type == joint::kFree) {
      Vec3 e = load3(qpos) - load3(rest);
      subtract_block(form, dof, radial_curvature(k, e, load3(mu + dof)));
      qpos += 3, rest += 3, dof += 3;
    }
    Vec3 e = quaternion_difference(qpos, rest);
    subtract_block(form, dof, turned_curvature(k, e, load3(mu + dof)));
  }
}

}  // namespace

void add_springs(const ModelView& m, const DataView& d, const DofRows& residual) {
  for (int j = 0; j < m.njnt; j++) {
    Poly k = joint_stiffness(m, j);
    if (k.zero()) continue;
    int dof = m.jnt_dofadr[j], type = m.jnt_type[j];
    auto [qpos, rest] = spring_state(m, d, j);
    if (type == joint::kSlide || type == joint::kHinge) {
      residual.dq(dof, dof) -= k.slope(qpos[0] - rest[0]);
      continue;
    }
    if (type == joint::kFree) {
      subtract_block(residual, dof, radial_stiffness(k, load3(qpos) - load3(rest)));
      qpos += 3, rest += 3, dof += 3;
    }
    // rotation of a ball or free joint
    Vec3 e = quaternion_difference(qpos, rest);
    subtract_block(residual, dof, radial_stiffness(k, e) * right_jacobian_inverse(e));
  }
}

int spring_slopes(const ModelView& m, const DataView& d, int j, SpringSlope out[2]) {
  const Poly k = joint_stiffness(m, j);
  if (k.zero()) return 0;
  int dof = m.jnt_dofadr[j], type = m.jnt_type[j], count = 0;
  auto [qpos, rest] = spring_state(m, d, j);
  if (type == joint::kSlide || type == joint::kHinge) {
    double x = qpos[0] - rest[0], slope = k.slope(x);
    // tie: sign of a spring in the metric
    out[0] = {dof, 1, slope > 0 ? slope : 0, {slope > 0 ? k.curvature(x) : 0, 0, 0}};
    return 1;
  }
  if (type == joint::kFree) {
    out[count++] = radial_slope(k, dof, load3(qpos) - load3(rest));
    qpos += 3, rest += 3, dof += 3;
  }
  // the angle r = |e| of a rotation e = log(rest^-1 q) changes by e/r . dq
  out[count++] = radial_slope(k, dof, quaternion_difference(qpos, rest));
  return count;
}

void spring_bends(const ModelView& m, const DataView& d, int j, Mat3 out[2]) {
  const Poly k = joint_stiffness(m, j);
  if (k.zero()) return;
  const int type = m.jnt_type[j];
  auto [qpos, rest] = spring_state(m, d, j);
  if (type == joint::kSlide || type == joint::kHinge) {
    out[0] = Mat3{};
    if (k.slope_acts(qpos[0] - rest[0])) out[0](0, 0) = k.third();
    return;
  }
  if (type == joint::kFree) {
    *out++ = radial_bend(k, load3(qpos) - load3(rest));
    qpos += 3, rest += 3;
  }
  const Vec3 e = quaternion_difference(qpos, rest);
  const Mat3 inverse = right_jacobian_inverse(e);
  const double r = norm(e);
  out[0] = transposed(inverse) * radial_bend(k, e) * inverse;
  if (r >= kAtRest && k.slope(r) > 0) {
    out[0] = out[0] + log_curvature(e, (k.curvature(r) / r) * e);
  }
}

Poly dof_damping(const ModelView& m, int dof) {
  const double* p = m.dof_dampingpoly + kNPoly * dof;
  int j = m.dof_jntid[dof];
  return add_actuator_damping(m, {m.dof_damping[dof], {p[0], p[1]}}, m.jnt_actuatorid[j], false, j);
}

Poly tendon_damping(const ModelView& m, int tendon) {
  const double* p = m.tendon_dampingpoly + kNPoly * tendon;
  return add_actuator_damping(m, {m.tendon_damping[tendon], {p[0], p[1]}},
                              m.tendon_actuatorid[tendon], true, tendon);
}

double tendon_armature(const ModelView& m, int tendon) {
  double armature = m.tendon_armature[tendon];
  visit_actuators(m, m.tendon_actuatorid[tendon], true, tendon,
                  [&](int a, double gear2) { armature += gear2 * m.actuator_armature[a]; });
  return armature;
}

bool springs_enabled(const ModelView& m) { return !(m.opt.disableflags & disable::kSpring); }
bool dampers_enabled(const ModelView& m) { return !(m.opt.disableflags & disable::kDamper); }
bool passive_enabled(const ModelView& m) { return springs_enabled(m) || dampers_enabled(m); }

void add_passive(const ModelView& m, const DataView& d, const DofRows& residual) {
  if (springs_enabled(m)) add_springs(m, d, residual);
  if (dampers_enabled(m)) {
    for (int i = 0; i < m.nv; i++) {
      Poly damping = dof_damping(m, i);
      if (!damping.zero()) residual.dv(i, i) -= damping.slope_odd(d.qvel[i]);
    }
  }
}

void add_passive_hessian(const ModelView& m, const DataView& d, const double* mu,
                         const QuadraticForm& form) {
  if (springs_enabled(m)) add_spring_hessians(m, d, mu, form);
  for (int i = 0; dampers_enabled(m) && i < m.nv; i++) {
    const int column = form.v_column(i);
    form.add(i, column, column, -mu[i] * dof_damping(m, i).curvature_odd(d.qvel[i]));
  }
}

}  // namespace mujacobian

#include "adjoint/curve.h"
#include "forces/passive.h"
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

}  // namespace

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

}  // namespace mujacobian

#include "forces/external.h"

#include "forces/passive.h"
#include "layout/enums.h"
#include "layout/topology.h"
#include "spatial/vector.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// Returns the sums over subtrees of the wrenches wrench(b), each about the center of mass of body
// b.
template <class F>
WrenchSum* sum_wrenches(const ModelView& m, const DataView& d, Arena& arena, F wrench) {
  // each body alone, about the reference point
  WrenchSum* c = arena.take<WrenchSum>(m.nbody);
  for (int b = 0; b < m.nbody; b++) {
    Force at_com = wrench(b);
    Vec3 x = load3(d.xipos + 3 * b) - load3(d.subtree_com + 3 * m.body_rootid[b]);
    c[b].wrench = {at_com.ang + cross(x, at_com.lin), at_com.lin};
    c[b].turn = skew(x) * skew(at_com.lin) + skew(at_com.ang);
  }
  // add the children to their parents
  for (int b = m.nbody - 1; b > 0; b--) {
    int parent = m.body_parentid[b];
    if (parent == 0) continue;
    c[parent].wrench += c[b].wrench;
    c[parent].turn = c[parent].turn + c[b].turn;
  }
  return c;
}

// Adds d(S^T W)/dq for the wrenches with the sums `c`.
void add_wrenches(const ModelView& m, const DataView& d, const unsigned char* frozen,
                  const WrenchSum* c, const DofRows& residual) {
  for (int k = 0; k < m.nv; k++) {
    const WrenchSum& at_k = c[m.dof_bodyid[k]];
    Motion axis = load_motion(d.cdof + 6 * k);
    Force changed = wrench_change(at_k, axis);
    Force moved = cross(axis, at_k.wrench);

    // column k, rows of k and its ancestors: the axis of an ancestor does not move with the subtree
    for (int j = k; j >= 0; j = m.dof_parentid[j]) {
      if (frozen && frozen[j]) continue;
      Force change = moves_axis(m, k, j) ? changed : changed + moved;
      residual.dq(j, k) += dot(load_motion(d.cdof + 6 * j), change);
    }

    // row k, columns of its ancestors, which move the whole subtree of k
    if (frozen && frozen[k]) continue;
    Vec3 row = transpose_mul(at_k.turn, axis.ang) - cross(at_k.wrench.lin, axis.lin);
    for (int j = m.dof_parentid[k]; j >= 0; j = m.dof_parentid[j]) {
      residual.dq(k, j) += dot(row, load3(d.cdof + 6 * j));
    }
  }
}

// Returns, for the virtual velocity of `virt`, the sums over subtrees of
// w t^T - (w . t) 1 + u f^T - (u . f) 1, with the angular velocity w of a body, the velocity u of
// its center of mass, and its wrench (t, f).                                             (HES-17)
template <class F>
Mat3* sum_virtual_turns(const ModelView& m, const DataView& d, const DataView& virt, Arena& arena,
                        F wrench) {
  Mat3* turn = arena.take<Mat3>(m.nbody);
  for (int b = 0; b < m.nbody; b++) {
    Force at_com = wrench(b);
    Motion motion = load_motion(virt.cvel + 6 * b);
    Vec3 x = load3(d.xipos + 3 * b) - load3(d.subtree_com + 3 * m.body_rootid[b]);
    Vec3 u = at_point(motion, x);
    double power = dot(motion.ang, at_com.ang) + dot(u, at_com.lin);
    turn[b] = outer(motion.ang, at_com.ang) + outer(u, at_com.lin) + (-power) * identity3();
  }
  for (int b = m.nbody - 1; b > 0; b--) {
    int parent = m.body_parentid[b];
    if (parent != 0) turn[parent] = turn[parent] + turn[b];
  }
  return turn;
}

// Adds the second derivative of sum_b U_b . W_b for the wrenches wrench(b) and the virtual
// velocities of `virt`. (HES-18)
template <class F>
void add_wrench_hessian(const ModelView& m, const DataView& d, const DataView& virt,
                        const QuadraticForm& form, Arena& arena, F wrench) {
  const WrenchSum* sums = sum_wrenches(m, d, arena, wrench);
  const Mat3* turns = sum_virtual_turns(m, d, virt, arena, wrench);

  // the changes of the two sums with every dof
  Force* wrench_q = arena.take<Force>(m.nv);
  Vec3* torque_q = arena.take<Vec3>(m.nv);
  for (int k = 0; k < m.nv; k++) {
    const WrenchSum& sum = sums[m.dof_bodyid[k]];
    Motion axis = load_motion(d.cdof + 6 * k), rate = load_motion(virt.cdof_dot + 6 * k);
    wrench_q[k] = wrench_change(sum, axis) + cross(axis, sum.wrench);
    torque_q[k] = transpose_mul(sum.turn, rate.ang) - cross(sum.wrench.lin, rate.lin) +
                  turns[m.dof_bodyid[k]] * axis.ang;
  }
  auto entry = [&](int l, int k) {
    return dot(load_motion(virt.cdof_dot + 6 * l), wrench_q[k]) +
           dot(load3(d.cdof + 6 * l), torque_q[k]);
  };
  for (int k = 0; k < m.nv; k++) {
    form.add(k, form.q_column(k), form.q_column(k), entry(k, k));
    for (int l = m.dof_parentid[k]; l >= 0; l = m.dof_parentid[l]) {
      // rotations of one joint: the mean of both orders                                  (HES-13)
      const double value = moves_axis(m, k, l) ? 0.5 * (entry(l, k) + entry(k, l)) : entry(l, k);
      form.add(k, form.q_column(l), form.q_column(k), value);
    }
  }
}

bool any_applied(const ModelView& m, const DataView& d) {
  for (int k = 6; k < 6 * m.nbody; k++) {
    if (d.xfrc_applied[k] != 0) return true;
  }
  return false;
}

// xfrc_applied of a body
Force applied_wrench(const DataView& d, int b) {
  const double* x = d.xfrc_applied + 6 * b;  // force, torque
  return {load3(x + 3), load3(x)};
}

bool compensates_gravity(const ModelView& m) {
  return m.flg_gravcomp && passive_enabled(m) && !(m.opt.disableflags & disable::kGravity);
}

Force compensation_wrench(const ModelView& m, int b) {
  return {{0, 0, 0}, -(m.body_mass[b] * m.body_gravcomp[b]) * load3(m.opt.gravity.v)};
}

// Returns whether the compensation of a dof is part of an actuator force that is saturated.
bool omits_compensation(const ModelView& m, const unsigned char* frozen, int dof) {
  return frozen && frozen[dof] && m.jnt_actgravcomp[m.dof_jntid[dof]];
}

}  // namespace

const WrenchSum* applied_wrenches(const ModelView& m, const DataView& d, Arena& arena) {
  if (!any_applied(m, d)) return nullptr;
  return sum_wrenches(m, d, arena, [&](int b) { return applied_wrench(d, b); });
}

void add_applied(const ModelView& m, const DataView& d, const DofRows& residual, Arena& arena) {
  const WrenchSum* sums = applied_wrenches(m, d, arena);
  if (sums) add_wrenches(m, d, nullptr, sums, residual);
}

void add_gravity_compensation(const ModelView& m, const DataView& d, const unsigned char* frozen,
                              const DofRows& residual, Arena& arena) {
  if (!compensates_gravity(m)) return;

  // only compensation that is part of the actuator force is saturated with it
  unsigned char* omitted = nullptr;
  if (frozen) {
    omitted = arena.take<unsigned char>(m.nv);
    for (int i = 0; i < m.nv; i++) omitted[i] = omits_compensation(m, frozen, i);
  }
  const WrenchSum* sums =
      sum_wrenches(m, d, arena, [&](int b) { return compensation_wrench(m, b); });
  add_wrenches(m, d, omitted, sums, residual);
}

void add_applied_hessian(const ModelView& m, const DataView& d, const double* mu,
                         const QuadraticForm& form, Arena& arena) {
  if (any_applied(m, d)) {
    add_applied_power_hessian(m, d, at_velocity(m, d, mu, arena), form, arena);
  }
}

void add_applied_power_hessian(const ModelView& m, const DataView& d, const DataView& virt,
                               const QuadraticForm& form, Arena& arena) {
  if (!any_applied(m, d)) return;
  add_wrench_hessian(m, d, virt, form, arena, [&](int b) { return applied_wrench(d, b); });
}

void add_gravity_compensation_hessian(const ModelView& m, const DataView& d,
                                      const unsigned char* frozen, const double* mu,
                                      const QuadraticForm& form, Arena& arena) {
  if (!compensates_gravity(m)) return;
  double* acting = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) acting[i] = omits_compensation(m, frozen, i) ? 0 : mu[i];
  const DataView virt = at_velocity(m, d, acting, arena);
  add_wrench_hessian(m, d, virt, form, arena, [&](int b) { return compensation_wrench(m, b); });
}

}  // namespace mujacobian

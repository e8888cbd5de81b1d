#include "forces/external.h"

#include "forces/passive.h"
#include "layout/enums.h"
#include "layout/topology.h"
#include "spatial/vector.h"

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

}  // namespace

const WrenchSum* applied_wrenches(const ModelView& m, const DataView& d, Arena& arena) {
  bool any = false;
  for (int k = 6; k < 6 * m.nbody && !any; k++) any = d.xfrc_applied[k] != 0;
  if (!any) return nullptr;
  return sum_wrenches(m, d, arena, [&](int b) {
    const double* x = d.xfrc_applied + 6 * b;  // force, torque
    return Force{load3(x + 3), load3(x)};
  });
}

void add_applied(const ModelView& m, const DataView& d, const DofRows& residual, Arena& arena) {
  const WrenchSum* sums = applied_wrenches(m, d, arena);
  if (sums) add_wrenches(m, d, nullptr, sums, residual);
}

void add_gravity_compensation(const ModelView& m, const DataView& d, const unsigned char* frozen,
                              const DofRows& residual, Arena& arena) {
  if (!m.flg_gravcomp || !passive_enabled(m) || (m.opt.disableflags & disable::kGravity)) return;
  Vec3 gravity = load3(m.opt.gravity.v);

  // only compensation that is part of the actuator force is saturated with it
  unsigned char* omitted = nullptr;
  if (frozen) {
    omitted = arena.take<unsigned char>(m.nv);
    for (int i = 0; i < m.nv; i++) omitted[i] = frozen[i] && m.jnt_actgravcomp[m.dof_jntid[i]];
  }
  const WrenchSum* sums = sum_wrenches(m, d, arena, [&](int b) {
    return Force{{0, 0, 0}, -(m.body_mass[b] * m.body_gravcomp[b]) * gravity};
  });
  add_wrenches(m, d, omitted, sums, residual);
}

}  // namespace mujacobian

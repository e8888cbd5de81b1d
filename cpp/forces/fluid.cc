#include "forces/fluid.h"

#include "forces/fluid_element.h"
#include "forces/passive.h"
#include "layout/enums.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// A wrench on a subtree that depends on the velocity of its bodies and on a second motion of
// theirs. It changes by S_k x* wrench + rate dvelocity_k + damping dmotion_k with q_k, and by rate
// S_k with v_k.
struct SubtreeWrench {
  Force wrench;
  Mat6 rate, damping;
};

// Changes of the velocity and of the second motion with q_k, in addition to the rigid motion.
struct DofMotion {
  Motion dvelocity, dmotion;
};

void sum_over_subtrees(const ModelView& m, SubtreeWrench* c) {
  for (int b = m.nbody - 1; b > 0; b--) {
    int parent = m.body_parentid[b];
    if (parent == 0) continue;
    c[parent].wrench += c[b].wrench;
    c[parent].rate += c[b].rate;
    c[parent].damping += c[b].damping;
  }
}

// Adds scale d(S^T wrench) to the rows with use[dof] set (null: all).                    (FLU-3)
void add_composites(const ModelView& m, const DataView& d, const SubtreeWrench* c,
                    const DofMotion* motion, double scale, const unsigned char* use,
                    const DofRows& residual) {
  for (int k = 0; k < m.nv; k++) {
    const SubtreeWrench& at_k = c[m.dof_bodyid[k]];
    const Motion axis = load_motion(d.cdof + 6 * k);

    // column k, rows of k and its ancestors: the axis of an ancestor does not move with the subtree
    const Force changed = at_k.rate * motion[k].dvelocity + at_k.damping * motion[k].dmotion;
    const Force moved = cross(axis, at_k.wrench), pushed = at_k.rate * axis;
    for (int j = k; j >= 0; j = m.dof_parentid[j]) {
      if (use && !use[j]) continue;
      const Motion other = load_motion(d.cdof + 6 * j);
      const Force change = moves_axis(m, k, j) ? changed : changed + moved;
      residual.dq(j, k) += scale * dot(other, change);
      residual.dv(j, k) += scale * dot(other, pushed);
    }

    // row k, columns of its ancestors, which move the whole subtree of k
    if (use && !use[k]) continue;
    const Force rate = transpose_mul(at_k.rate, axis), damping = transpose_mul(at_k.damping, axis);
    for (int j = m.dof_parentid[k]; j >= 0; j = m.dof_parentid[j]) {
      residual.dq(k, j) +=
          scale * (dot(motion[j].dvelocity, rate) + dot(motion[j].dmotion, damping));
      residual.dv(k, j) += scale * dot(load_motion(d.cdof + 6 * j), rate);
    }
  }
}

// Returns whether one of the dofs in `use` (null: all) moves the body.
bool moves_any(const ModelView& m, int body, const unsigned char* use) {
  if (!use) return true;
  for (int k = last_dof(m, body); k >= 0; k = m.dof_parentid[k]) {
    if (use[k]) return true;
  }
  return false;
}

// Adds scale d(D w) to the rows in `use`. The caller sets w to zero in columns that these rows
// lack.
void add_damping_change(const ModelView& m, const DataView& d, FluidPart part, const double* w,
                        double scale, const unsigned char* use, const DofRows& residual,
                        Arena& arena) {
  // the motion of the bodies at joint velocity w, and its changes with every dof
  const DataView moving = at_velocity(m, d, w, arena);
  DofMotion* motion = arena.take<DofMotion>(m.nv);
  for (int k = 0; k < m.nv; k++) {
    motion[k] = {velocity_change(m, d, k), load_motion(moving.cdof_dot + 6 * k)};
  }

  // wrenches B w of the elements, and their derivatives
  SubtreeWrench* c = arena.zeros<SubtreeWrench>(m.nbody);
  visit_elements(m, d, [&](const FluidElement& e) {
    if (!moves_any(m, e.body, use)) return;
    double along[6], b[36], change[36], force[6] = {};
    e.localize(load_motion(moving.cvel + 6 * e.body), along);
    differentiate_damping(implicit_part(e, part), is_symmetrized(m, e.body, part), along, b,
                          change);
    for (int i = 0; i < 6; i++)
      for (int j = 0; j < 6; j++) force[i] += b[6 * i + j] * along[j];
    c[e.body].wrench += e.globalize(force);
    c[e.body].rate += globalize(e, change);
    c[e.body].damping += globalize(e, b);
  });
  sum_over_subtrees(m, c);
  add_composites(m, d, c, motion, scale, use, residual);
}

}  // namespace

FluidElement implicit_part(FluidElement e, FluidPart part) {
  if (part != FluidPart::kDrag || !e.round) return e;
  FluidEllipsoid& x = e.ellipsoid;
  x.kutta = x.magnus = 0;
  for (int i = 0; i < 3; i++) x.mass[i] = x.inertia[i] = 0;
  return e;
}

Motion velocity_change(const ModelView& m, const DataView& d, int k) {
  Motion turn = load_motion(d.cdof_dot + 6 * k);
  turn.lin += cross(load3(d.cdof + 6 * k), load3(m.opt.wind.v));
  return turn;
}

bool is_symmetrized(const ModelView& m, int body, FluidPart part) {
  if (part != FluidPart::kSymmetric) return part == FluidPart::kDrag;
  return free_body(m, m.dof_treeid[last_dof(m, body)]) < 0;
}

int row_group(const ModelView& m, FluidPart part, int dof) {
  int tree = m.dof_treeid[dof], adr = m.tree_dofadr[tree], num = m.tree_dofnum[tree];
  bool own_block = part != FluidPart::kDrag && free_body(m, tree) >= 0;
  bool diagonal = num > 1 && m.M_rownnz[adr + num - 1] == 1 && !own_block;
  return diagonal ? 1 + dof - adr : 0;
}

bool fluid_enabled(const ModelView& m) {
  return passive_enabled(m) && (m.opt.density != 0 || m.opt.viscosity != 0);
}

void add_fluid(const ModelView& m, const DataView& d, const DofRows& residual, Arena& arena) {
  if (!fluid_enabled(m)) return;
  SubtreeWrench* c = arena.zeros<SubtreeWrench>(m.nbody);
  DofMotion* motion = arena.zeros<DofMotion>(m.nv);
  for (int k = 0; k < m.nv; k++) motion[k].dvelocity = velocity_change(m, d, k);
  visit_elements(m, d, [&](const FluidElement& e) {
    double force[6], rate[36];
    differentiate_force(e, force, rate);
    c[e.body].wrench += e.globalize(force);
    c[e.body].rate += globalize(e, rate);
  });
  sum_over_subtrees(m, c);
  add_composites(m, d, c, motion, 1, nullptr, residual);
}

double FluidDamping::entry(const ModelView& m, const DataView& d, int i, int j) const {
  const Mat6& b = composite[m.dof_bodyid[i > j ? i : j]];
  return dot(load_motion(d.cdof + 6 * i), b * load_motion(d.cdof + 6 * j));
}

FluidDamping fluid_damping(const ModelView& m, const DataView& d, FluidPart part, Arena& arena) {
  if (!fluid_enabled(m)) return {nullptr};
  Mat6* composite = arena.zeros<Mat6>(m.nbody);
  visit_elements(m, d, [&](const FluidElement& e) {
    double b[36];
    differentiate_damping(implicit_part(e, part), is_symmetrized(m, e.body, part), nullptr, b,
                          nullptr);
    composite[e.body] += globalize(e, b);
  });
  for (int b = m.nbody - 1; b > 0; b--) {
    if (m.body_parentid[b]) composite[m.body_parentid[b]] += composite[b];
  }
  return {composite};
}

void add_fluid_damping_change(const ModelView& m, const DataView& d, FluidPart part,
                              bool full_pattern, const double* w, double scale,
                              const DofRows& residual, Arena& arena) {
  if (!fluid_enabled(m)) return;
  if (full_pattern) return add_damping_change(m, d, part, w, scale, nullptr, residual, arena);

  // one pass per group of rows, with w restricted to the columns of the group
  double* own = arena.take<double>(m.nv);
  unsigned char* use = arena.take<unsigned char>(m.nv);
  for (int group = 0; group < kMaxGroups; group++) {
    bool any = false;
    for (int i = 0; i < m.nv; i++) {
      use[i] = row_group(m, part, i) == group;
      own[i] = use[i] ? w[i] : 0;
      any |= use[i];
    }
    if (any) add_damping_change(m, d, part, own, scale, use, residual, arena);
  }
}

void add_fluid_diagonal_change(const ModelView& m, const DataView& d, FluidPart part, double scale,
                               const DofRows& residual, Arena& arena) {
  if (!fluid_enabled(m)) return;
  // d(D_jj) is row j of d(D e_j)
  double* unit = arena.zeros<double>(m.nv);
  unsigned char* use = arena.zeros<unsigned char>(m.nv);
  for (int j = 0; j < m.nv; j++) {
    unit[j] = use[j] = 1;
    add_damping_change(m, d, part, unit, scale, use, residual, arena);
    unit[j] = use[j] = 0;
  }
}

}  // namespace mujacobian

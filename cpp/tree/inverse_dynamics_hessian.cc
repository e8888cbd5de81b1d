#include "tree/inverse_dynamics_hessian.h"

#include "layout/enums.h"
#include "tree/composite.h"
#include "tree/spatial_lanes.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// Sums over the subtree of each body that contain the virtual velocity U of mu.
struct VirtualComposite {
  Force momentum;  // L = I U
  Mat3 rate;       // N of U, the angular block of B_U                                     (ID-8)
  Vec3 torque;     // Z = B^T U, whose linear part is zero                                (HES-9)
};

// Returns -B_U^T x, the derivative of Z with respect to the velocity x. Its linear part is zero.
// (HES-11)
inline Vec3 torque_change(const VirtualComposite& c, Motion x) {
  return -(transpose_mul(c.rate, x.ang) + 2.0 * cross(c.momentum.lin, x.lin));
}

// Without velocities only the momentum is computed.
template <bool velocities>
VirtualComposite* virtual_composites(const ModelView& m, const DataView& d, const DataView& virt,
                                     Arena& arena) {
  // each body alone
  VirtualComposite* composite = arena.take<VirtualComposite>(m.nbody);
  for (int b = 1; b < m.nbody; b++) {
    Inertia inertia{d.cinert + 10 * b};
    Motion u = load_motion(virt.cvel + 6 * b);
    VirtualComposite& c = composite[b];
    c.momentum = inertia * u;
    if (!velocities) continue;
    c.rate = inertia_rate(inertia, u, c.momentum.ang);
    c.torque = torque_change(c, load_motion(d.cvel + 6 * b));  // (HES-11)
  }
  // add the children to their parents
  for (int b = m.nbody - 1; b > 0; b--) {
    int parent = m.body_parentid[b];
    if (parent == 0) continue;
    composite[parent].momentum += composite[b].momentum;
    if (!velocities) continue;
    composite[parent].rate = composite[parent].rate + composite[b].rate;
    composite[parent].torque += composite[b].torque;
  }
  return composite;
}

// The vectors of a dof as an ancestor, which multiply those of its descendants.
struct Outer {
  Motion axis, axis_dot;  // S, S'
  Motion axis_virtual;    // S^u, the rate of the axis at the virtual velocity
  Motion second, sum;     // S'', S' + V_post x S
};

// The changes of the subtree sums F, L and Z with a dof.                                  (HES-10)
struct Inner {
  Force force_q, force_v, force_a;  // dF/dq, dF/dv, dF/da
  Force momentum_q;                 // dL/dq
  Vec3 torque_q, torque_v;          // dZ/dq, dZ/dv
};

double dot3(Vec3 a, Motion b) { return dot(a, b.ang); }

// Second derivatives with respect to a dof l and the dof k, which is l or below it.       (HES-12)
double entry_qq(const Outer& l, const Inner& k) {
  return dot(l.axis_virtual, k.force_q) + dot(l.second, k.momentum_q) +
         dot3(k.torque_q, l.axis_dot);
}
double entry_qv(const Outer& l, const Inner& k) {
  return dot(l.axis_virtual, k.force_v) + dot3(k.torque_v, l.axis_dot);
}
double entry_vv(const Outer& l, const Inner& k) { return dot3(k.torque_v, l.axis); }
double entry_qa(const Outer& l, const Inner& k) { return dot(l.axis_virtual, k.force_a); }

// Entries of row l for all dofs k = l .. end-1 that it moves, from index 0.
struct RowEntries {
  double *qq, *qv, *vq, *vv, *aq, *qa;  // derivative with respect to the first of l, second of k
};

RowEntries take_entries(int n, Arena& arena) {
  const int size = round_to_line(n + 2 * kLanes);
  double* all = arena.take<double>(6 * size);
  return {all, all + size, all + 2 * size, all + 3 * size, all + 4 * size, all + 5 * size};
}

// All vectors, by dof and by component.
struct Sweep {
  Outer* outer;
  Inner* inner;  // of rotations of ball and free joints only
  Vectors force_q, force_v, force_a, momentum_q, torque_q, torque_v;
};

// Returns whether the dof is one of the three rotations of a ball or free joint.
bool is_rotation(const ModelView& m, int dof) {
  const int j = m.dof_jntid[dof], type = m.jnt_type[j];
  return type == joint::kBall || (type == joint::kFree && dof >= m.jnt_dofadr[j] + 3);
}

// Without velocities S' is zero, and with it all that it multiplies.
template <bool velocities>
Sweep sweep(const ModelView& m, const DataView& d, const double* acc, const DataView& virt,
            Arena& arena) {
  const MotionSweep motion = sweep_motion(m, d, acc, base_acceleration(m), arena);
  const Composite* composite = composites(m, d, motion.acceleration, arena);
  const VirtualComposite* virtuals = virtual_composites<velocities>(m, d, virt, arena);
  auto moving = [&](int components) {
    return velocities ? make_vectors(m.nv, arena, components) : Vectors{};
  };
  Sweep s{arena.take<Outer>(m.nv),
          arena.take<Inner>(m.nv),
          make_vectors(m.nv, arena),
          moving(6),
          make_vectors(m.nv, arena),
          make_vectors(m.nv, arena),
          moving(3),
          moving(3)};
  for (int i = 0; i < m.nv; i++) {
    const int body = m.dof_bodyid[i];
    const Composite& c = composite[body];
    const VirtualComposite& u = virtuals[body];
    const Inertia inertia{d.crb + 10 * body};
    const Outer o{load_motion(d.cdof + 6 * i), load_motion(d.cdof_dot + 6 * i),
                  load_motion(virt.cdof_dot + 6 * i), motion.rates[i].second, motion.rates[i].sum};
    Inner n{};
    n.force_a = inertia * o.axis;
    n.momentum_q = inertia * o.axis_virtual + cross(o.axis, u.momentum);
    if (!velocities) {
      n.force_q = inertia * o.second + cross(o.axis, c.force);
    } else {
      n.force_q = inertia * o.second + apply_rate(c, o.axis_dot.ang) + cross(o.axis, c.force);
      n.force_v = inertia * o.sum + apply_rate(c, o.axis.ang);
      n.torque_q = apply_rate_transposed(c, o.axis_virtual) + torque_change(u, o.axis_dot) +
                   cross(o.axis.ang, u.torque);
      n.torque_v = torque_change(u, o.axis);
    }
    s.outer[i] = o;
    if (is_rotation(m, i)) s.inner[i] = n;
    s.force_q.put(i, n.force_q.ang, n.force_q.lin);
    s.force_a.put(i, n.force_a.ang, n.force_a.lin);
    s.momentum_q.put(i, n.momentum_q.ang, n.momentum_q.lin);
    if (!velocities) continue;
    s.force_v.put(i, n.force_v.ang, n.force_v.lin);
    s.torque_q.put(i, n.torque_q);
    s.torque_v.put(i, n.torque_v);
  }
  return s;
}

// Computes the entries of dof l with the dofs k = l .. end-1, eight at a time. Without velocities
// the bodies are at rest: S' and Z are zero.                                              (HES-12)
template <bool velocities>
void compute_row(const Sweep& s, int l, int end, const RowEntries& row) {
  const Outer& o = s.outer[l];
  double axis[6], axis_dot[6], axis_virtual[6], second[6], sum[6];
  store_motion(axis, o.axis), store_motion(axis_dot, o.axis_dot);
  store_motion(axis_virtual, o.axis_virtual);
  store_motion(second, o.second), store_motion(sum, o.sum);
  for (int k = l; k < end; k += 2 * kLanes) {
    LanePair qq{}, qv{}, vq{}, vv{}, aq{}, qa{};
    for (int n = 0; n < 6; n++) {
      accumulate(qq, axis_virtual[n], s.force_q.at(n, k));
      if (velocities) accumulate(qv, axis_virtual[n], s.force_v.at(n, k));
      accumulate(qa, axis_virtual[n], s.force_a.at(n, k));
    }
    for (int n = 0; n < 6; n++) {
      accumulate(qq, second[n], s.momentum_q.at(n, k));
      if (velocities) accumulate(vq, sum[n], s.momentum_q.at(n, k));
      accumulate(aq, axis[n], s.momentum_q.at(n, k));
    }
    for (int n = 0; velocities && n < 3; n++) {
      accumulate(qq, axis_dot[n], s.torque_q.at(n, k));
      accumulate(vq, axis[n], s.torque_q.at(n, k));
      accumulate(qv, axis_dot[n], s.torque_v.at(n, k));
      accumulate(vv, axis[n], s.torque_v.at(n, k));
    }
    const int to = k - l;
    store(row.qq + to, qq), store(row.qv + to, qv), store(row.vq + to, vq);
    store(row.vv + to, vv), store(row.aq + to, aq), store(row.qa + to, qa);
  }
}

// The rotations of one joint turn one another's axes. In exponential coordinates their second
// derivative is the mean of both orders, and the entries of (HES-12) hold in one order only.
// (HES-13)
void correct_rotations(const ModelView& m, const Sweep& s, int l, const RowEntries& row) {
  if (!is_rotation(m, l)) return;
  for (int k = l + 1; k < m.nv && m.dof_jntid[k] == m.dof_jntid[l]; k++) {
    const Outer& other = s.outer[k];
    const Inner& own = s.inner[l];
    row.qq[k - l] = 0.5 * (row.qq[k - l] + entry_qq(other, own));
    row.vv[k - l] = 0.5 * (row.vv[k - l] + entry_vv(other, own));
    row.vq[k - l] = entry_qv(other, own);
    row.aq[k - l] = entry_qa(other, own);
  }
}

// y += x for n entries
void add_entries(double* y, const double* x, int n) {
  int k = 0;
  for (; k + kLanes <= n; k += kLanes) store_lanes(y + k, load_lanes(y + k) + load_lanes(x + k));
  for (; k < n; k++) y[k] += x[k];
}

// Adds all second derivatives, or only those that do not involve velocities.
template <bool velocities>
void add_sweep(const ModelView& m, const DataView& d, const Topology& tree, const double* acc,
               const DataView& virt, const QuadraticForm& form, Arena& arena) {
  const Sweep s = sweep<velocities>(m, d, acc, virt, arena);
  const RowEntries row = take_entries(m.nv, arena);
  for (int l = 0; l < m.nv; l++) {
    const int n = tree.end[l] - l, at_q = form.q_column(l), at_v = form.v_column(l);
    compute_row<velocities>(s, l, tree.end[l], row);
    correct_rotations(m, s, l, row);
    // entries on the diagonal are computed twice, or are halves of G + G^T
    row.qq[0] *= 0.5, row.vv[0] *= 0.5, row.vq[0] = row.qa[0] = 0;
    add_entries(form.q(l) + at_q, row.qq, n);
    add_entries(form.mixed[l] + at_q, row.aq, n);
    for (int k = 1; k < n; k++) form.mixed[l + k][at_q] += row.qa[k];
    if (!velocities) continue;
    add_entries(form.q(l) + at_v, row.qv, n);
    add_entries(form.v(l) + at_q, row.vq, n);
    add_entries(form.v(l) + at_v, row.vv, n);
  }
}

}  // namespace

void add_inverse_dynamics_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                                  const double* acc, const double* mu, const QuadraticForm& form,
                                  Arena& arena) {
  add_power_hessian(m, d, tree, acc, at_velocity(m, d, mu, arena), form, arena);
}

void add_power_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                       const double* acc, const DataView& virt, const QuadraticForm& form,
                       Arena& arena) {
  add_sweep<true>(m, d, tree, acc, virt, form, arena);
}

void add_inertia_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                         const double* x, const double* mu, const QuadraticForm& form,
                         Arena& arena) {
  ModelView weightless = m;
  weightless.opt.disableflags |= disable::kGravity;
  add_sweep<false>(weightless, at_rest(m, d, arena), tree, x, at_velocity(m, d, mu, arena), form,
                   arena);
}

}  // namespace mujacobian

#include "smooth/inverse_dynamics.h"

#include "layout/enums.h"
#include "smooth/motion.h"
#include "spatial/lanes.h"

namespace mujacobian {
namespace {

// Composite quantities of the subtree under a body, all sums over its bodies.
struct Composite {
  Force force;       // F = I A + V x* I V
  Mat3 rate;         // N, the angular block of B = V x* I - I V x + (I V) x~*            (ID-8)
  Vec3 momentum;     // linear momentum
};

// B x = (N w, -2 p x w) acts on the angular part w only                                  (ID-8)
Force apply_rate(const Composite& c, Vec3 w) { return {c.rate * w, -2.0 * cross(c.momentum, w)}; }

// angular part of B^T x; its linear part is zero
Vec3 apply_rate_transposed(const Composite& c, Motion x) {
  return transpose_mul(c.rate, x.ang) + 2.0 * cross(c.momentum, x.lin);
}

// N = d/dt(rotational inertia about the fixed reference point) - [angular momentum]x     (ID-8)
Mat3 inertia_rate(Inertia inertia, Motion v, Vec3 angular_momentum) {
  const double* i = inertia.i;
  Mat3 rotational = {{i[0], i[3], i[4], i[3], i[1], i[5], i[4], i[5], i[2]}};
  Mat3 turn = skew(v.ang) * rotational;
  Vec3 mc = inertia.moment();
  double u[3] = {v.lin.x, v.lin.y, v.lin.z}, c[3] = {mc.x, mc.y, mc.z};
  double twice = 2 * dot(v.lin, mc);
  Mat3 l = skew(angular_momentum), n;
  for (int r = 0; r < 3; r++)
    for (int k = 0; k < 3; k++)
      n(r, k) = turn(r, k) + turn(k, r) - u[r] * c[k] - c[r] * u[k] + (r == k ? twice : 0) - l(r, k);
  return n;
}

// Each body's own terms, then sums over subtrees.
Composite* composites(const ModelView& m, const DataView& d, const Motion* acceleration,
                      Arena& arena) {
  Composite* composite = arena.take<Composite>(m.nbody);
  for (int b = 1; b < m.nbody; b++) {
    Inertia inertia{d.cinert + 10 * b};
    Motion v = load_motion(d.cvel + 6 * b);
    Force momentum = inertia * v;
    composite[b].force = inertia * acceleration[b] + cross(v, momentum);
    composite[b].rate = inertia_rate(inertia, v, momentum.ang);
    composite[b].momentum = momentum.lin;
  }
  for (int b = m.nbody - 1; b > 0; b--) {
    int parent = m.body_parentid[b];
    if (parent == 0) continue;
    composite[parent].force += composite[b].force;
    composite[parent].rate = composite[parent].rate + composite[b].rate;
    composite[parent].momentum += composite[b].momentum;
  }
  return composite;
}

// The chain of the current dof as lanes: component c of the vectors of its k-th ancestor is at
// [c][k]. Dofs are numbered depth first, so a dof only overwrites lanes that no later dof needs.
struct Chain {
  int stride;
  double *axis, *axis_dot, *second, *sum;
  int* dof;
};

void put(double* lanes, int stride, int k, Motion v) {
  lanes[k] = v.ang.x, lanes[stride + k] = v.ang.y, lanes[2 * stride + k] = v.ang.z;
  lanes[3 * stride + k] = v.lin.x, lanes[4 * stride + k] = v.lin.y;
  lanes[5 * stride + k] = v.lin.z;
}

// f . (vectors k .. k+3 of the chain)
template <int n>
Lanes project(const double* lanes, int stride, int k, const double* f) {
  Lanes sum = broadcast(f[0]) * load_lanes(lanes + k);
  for (int c = 1; c < n; c++) sum += broadcast(f[c]) * load_lanes(lanes + c * stride + k);
  return sum;
}

void unpack(double* p, Force f) { store3(p, f.ang), store3(p + 3, f.lin); }

}  // namespace

void inverse_dynamics_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                                 const double* acc, const Residual& residual, Arena& arena) {
  bool weightless = m.opt.disableflags & disable::kGravity;
  Vec3 base = weightless ? Vec3{0, 0, 0} : -load3(m.opt.gravity.v);
  const MotionSweep motion = sweep_motion(m, d, acc, base, arena);
  const Composite* composite = composites(m, d, motion.acceleration, arena);
  const DofRates* rates = motion.rates;

  Chain chain;
  chain.stride = round_to_lanes(tree.max_depth);
  chain.axis = arena.zeros<double>(6 * chain.stride);
  chain.axis_dot = arena.zeros<double>(6 * chain.stride);
  chain.second = arena.zeros<double>(6 * chain.stride);
  chain.sum = arena.zeros<double>(6 * chain.stride);
  chain.dof = arena.take<int>(chain.stride);
  double* entries = arena.take<double>(4 * chain.stride);
  double *lower_q = entries, *lower_v = entries + chain.stride;
  double *upper_q = entries + 2 * chain.stride, *upper_v = entries + 3 * chain.stride;
  const int stride = chain.stride;

  for (int i = 0; i < m.nv; i++) {
    const int body = m.dof_bodyid[i], depth = tree.depth[i];
    const Composite& c = composite[body];
    const Inertia inertia{d.crb + 10 * body};
    const Motion axis = load_motion(d.cdof + 6 * i), axis_dot = load_motion(d.cdof_dot + 6 * i);

    put(chain.axis, stride, depth, axis);
    put(chain.axis_dot, stride, depth, axis_dot);
    put(chain.second, stride, depth, rates[i].second);
    put(chain.sum, stride, depth, rates[i].sum);
    chain.dof[depth] = i;

    // forces on the subtree when dof i moves, seen by its ancestors: columns of i        (ID-9)
    double force_q[6], force_v[6], momentum[6], rate[3];
    Force carried = cross(axis, c.force);
    unpack(force_q, inertia * rates[i].second + apply_rate(c, axis_dot.ang) + carried);
    unpack(force_v, inertia * rates[i].sum + apply_rate(c, axis.ang));

    // reaction of dof i to motions of its ancestors: row of i                           (ID-10)
    unpack(momentum, inertia * axis);
    store3(rate, apply_rate_transposed(c, axis));

    for (int k = 0; k <= depth; k += kLanes) {
      store_lanes(lower_q + k, project<6>(chain.second, stride, k, momentum) +
                                   project<3>(chain.axis_dot, stride, k, rate));
      store_lanes(lower_v + k, project<6>(chain.sum, stride, k, momentum) +
                                   project<3>(chain.axis, stride, k, rate));
      store_lanes(upper_q + k, project<6>(chain.axis, stride, k, force_q));
      store_lanes(upper_v + k, project<6>(chain.axis, stride, k, force_v));
    }

    // rotations of one joint turn each other's axes, so that nothing is carried between them
    int jnt = m.dof_jntid[i];
    int first = m.jnt_dofadr[jnt] + (m.jnt_type[jnt] == joint::kFree ? 3 : 0);
    for (int j = first; j < i; j++) {
      upper_q[tree.depth[j]] -= dot(load_motion(d.cdof + 6 * j), carried);
    }

    // scatter
    double* row = residual.row[i];
    const int column = residual.column[i];
    const int nv = residual.components[residual.component[i]].nv;
    for (int k = 0; k < depth; k++) {
      int ancestor = chain.dof[k], other = residual.column[ancestor];
      row[other] = -lower_q[k];
      row[other + nv] = -lower_v[k];
      double* ancestor_row = residual.row[ancestor];
      ancestor_row[column] = -upper_q[k];
      ancestor_row[column + nv] = -upper_v[k];
    }
    row[column] = -upper_q[depth];
    row[column + nv] = -upper_v[depth];
  }
}

}  // namespace mujacobian

#include "tree/inverse_dynamics.h"

#include "layout/enums.h"
#include "tree/composite.h"
#include "tree/spatial_lanes.h"

namespace mujacobian {

void inverse_dynamics_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                                 const double* acc, const DofRows& residual, Arena& arena) {
  // accelerations of the bodies, rates of the axes and sums over subtrees
  const MotionSweep motion = sweep_motion(m, d, acc, base_acceleration(m), arena);
  const Composite* composite = composites(m, d, motion.acceleration, arena);
  const DofRates* rates = motion.rates;

  // minus the change of the force on the subtree of dof i, with q_i and v_i               (ID-9)
  const Vectors force_q = make_vectors(m.nv, arena), force_v = make_vectors(m.nv, arena);

  // vectors of the ancestors of the current dof, by depth. Dofs are numbered depth first, so that a
  // dof overwrites only vectors that no later dof needs.
  const Vectors axes = make_vectors(tree.max_depth, arena);
  const Vectors axes_dot = make_vectors(tree.max_depth, arena);
  const Vectors seconds = make_vectors(tree.max_depth, arena);
  const Vectors sums = make_vectors(tree.max_depth, arena);
  int* ancestor_column = arena.take<int>(tree.max_depth);
  double* entries_q = arena.take<double>(axes.stride);
  double* entries_v = arena.take<double>(axes.stride);

  for (int i = 0; i < m.nv; i++) {
    // the dof and everything that it moves
    const int body = m.dof_bodyid[i], depth = tree.depth[i];
    const Composite& c = composite[body];
    const Inertia inertia{d.crb + 10 * body};
    const Motion axis = load_motion(d.cdof + 6 * i), axis_dot = load_motion(d.cdof_dot + 6 * i);

    // column i: change of the force on its subtree                                       (ID-9)
    Force q = inertia * rates[i].second + apply_rate(c, axis_dot.ang) + cross(axis, c.force);
    Force v = inertia * rates[i].sum + apply_rate(c, axis.ang);
    force_q.put(i, -q.ang, -q.lin);
    force_v.put(i, -v.ang, -v.lin);

    // row i: -I S_i and the angular part of -B^T S_i                                    (ID-10)
    double momentum[6], rate[3];
    Force axis_momentum = inertia * axis;
    store3(momentum, -axis_momentum.ang), store3(momentum + 3, -axis_momentum.lin);
    store3(rate, -apply_rate_transposed(c, axis));

    // row i: their products with the vectors of all ancestors, eight at a time
    for (int k = 0; k < depth; k += 2 * kLanes) {
      LanePair row_q{}, row_v{};
      for (int n = 0; n < 6; n++) {
        if (n < 3) accumulate(row_q, rate[n], axes_dot.at(n, k));
        if (n < 3) accumulate(row_v, rate[n], axes.at(n, k));
        accumulate(row_q, momentum[n], seconds.at(n, k));
        accumulate(row_v, momentum[n], sums.at(n, k));
      }
      store(entries_q + k, row_q), store(entries_v + k, row_v);
    }

    // scatter them: the columns of the ancestors need not be consecutive
    double* row = residual.row[i];
    double* row_v = row + residual.components[residual.component[i]].nv;
    for (int k = 0; k < depth; k++) {
      row[ancestor_column[k]] = entries_q[k];
      row_v[ancestor_column[k]] = entries_v[k];
    }

    // dof i is the ancestor at this depth for the dofs that follow
    axes.put(depth, axis.ang, axis.lin);
    axes_dot.put(depth, axis_dot.ang, axis_dot.lin);
    seconds.put(depth, rates[i].second.ang, rates[i].second.lin);
    sums.put(depth, rates[i].sum.ang, rates[i].sum.lin);
    ancestor_column[depth] = residual.column[i];
  }

  // row i: S_i . force in the columns of dof i and its descendants, which are consecutive (ID-9)
  for (int i = 0; i < m.nv; i++) {
    const double* axis = d.cdof + 6 * i;
    double* row = residual.row[i] + residual.column[i];
    double* row_v = row + residual.components[residual.component[i]].nv;
    for (int k = i, end = tree.end[i]; k < end; k += 2 * kLanes) {
      LanePair q{}, v{};
      for (int n = 0; n < 6; n++) {
        accumulate(q, axis[n], force_q.at(n, k));
        accumulate(v, axis[n], force_v.at(n, k));
      }
      store(row + (k - i), q, end - k), store(row_v + (k - i), v, end - k);
    }
  }

  // The rotations of one ball or free joint turn one another's axes. The product of S_k with
  // S_i x* F, which column i contains for ancestors k, does not apply between them.       (ID-11)
  for (int j = 0; j < m.njnt; j++) {
    int type = m.jnt_type[j];
    if (type != joint::kBall && type != joint::kFree) continue;
    int first = m.jnt_dofadr[j] + (type == joint::kFree ? 3 : 0);
    const Force& force = composite[m.jnt_bodyid[j]].force;
    for (int i = first; i < first + 3; i++) {
      Force turned = cross(load_motion(d.cdof + 6 * i), force);
      for (int k = first; k < i; k++) {
        residual.dq(k, i) += dot(load_motion(d.cdof + 6 * k), turned);
      }
    }
  }
}

}  // namespace mujacobian

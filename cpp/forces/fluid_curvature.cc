#include "forces/fluid_curvature.h"

#include "forces/fluid_element.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// The motions of a body that a function of it depends on, in the axes of the body: a virtual
// motion, the velocity relative to the medium, and the motion at joint velocity w.
enum { kVirtual, kVelocity, kStep, kMotions };

// Sums over a subtree of the derivatives of a function of these motions: forces, and matrices with
// second[b][a] = second[a][b]^T.
struct MotionSum {
  Force slope[kMotions];
  Mat6 second[kMotions][kMotions];

  void add(const FluidElement& e, int a, const double force[6]) { slope[a] += e.globalize(force); }
  void add(const FluidElement& e, int a, int b, const double matrix[36]) {
    second[a][b] += globalize(e, matrix);
    if (a == b) return;
    double mirror[36];
    for (int i = 0; i < 36; i++) mirror[i] = matrix[6 * (i % 6) + i / 6];
    second[b][a] += globalize(e, mirror);
  }
};

void sum_over_subtrees(const ModelView& m, MotionSum* c) {
  for (int body = m.nbody - 1; body > 0; body--) {
    const int parent = m.body_parentid[body];
    if (parent == 0) continue;
    for (int a = 0; a < kMotions; a++) {
      c[parent].slope[a] += c[body].slope[a];
      for (int b = 0; b < kMotions; b++) c[parent].second[a][b] += c[body].second[a][b];
    }
  }
}

// The changes of the motions with the position of a dof, in addition to the rigid motion.
struct DofChange {
  Motion by[kMotions];
};

// The change of the forces of a subtree with the position of its dof, and with its part in the
// motions.
struct DofForces {
  Force moved[kMotions];
  Force pushed[kMotions][kMotions];  // second: the motion that changes
};

// Adds `scale` times the second derivatives of a sum over bodies, for every dof and its ancestors.
// `use` marks the dofs whose w counts; null: there is no w.                               (HES-52)
void add_sum(const ModelView& m, const DataView& d, const MotionSum* sums, const DofChange* change,
             double scale, const unsigned char* use, const QuadraticForm& form, Arena& arena) {
  DofForces* forces = arena.take<DofForces>(m.nv);
  for (int k = 0; k < m.nv; k++) {
    const MotionSum& sum = sums[m.dof_bodyid[k]];
    const Motion axis = load_motion(d.cdof + 6 * k);
    for (int a = 0; a < kMotions; a++) {
      forces[k].moved[a] = cross(axis, sum.slope[a]);
      for (int b = 0; b < kMotions; b++) {
        forces[k].moved[a] += sum.second[a][b] * change[k].by[b];
        forces[k].pushed[a][b] = sum.second[a][b] * axis;
      }
    }
  }
  // with respect to the position of l, and to the position or a motion of k, which is l or below it
  auto positions = [&](int l, int k) {
    double value = 0;
    for (int a = 0; a < kMotions; a++) value += dot(change[l].by[a], forces[k].moved[a]);
    return scale * value;
  };
  auto mixed = [&](int l, int k, int motion) {
    double value = 0;
    for (int a = 0; a < kMotions; a++) value += dot(change[l].by[a], forces[k].pushed[a][motion]);
    return scale * value;
  };
  // adds those with respect to the position of l, and to the velocity and w of k
  auto add_mixed = [&](int l, int k, double by_velocity, double by_step) {
    form.add(k, form.q_column(l), form.v_column(k), by_velocity);
    if (use && use[k]) form.mixed[k][form.q_column(l)] += by_step;
  };
  for (int k = 0; k < m.nv; k++)
    for (int l = k; l >= 0; l = m.dof_parentid[l]) {
      const Motion axis = load_motion(d.cdof + 6 * l);
      const DofForces& at_k = forces[k];
      double both = positions(l, k);
      add_mixed(l, k, mixed(l, k, kVelocity), mixed(l, k, kStep));
      if (l != k && moves_axis(m, k, l)) {
        // rotations of one joint                                                         (HES-13)
        both = 0.5 * (both + positions(k, l));
        add_mixed(k, l, mixed(k, l, kVelocity), mixed(k, l, kStep));
      } else if (l != k) {
        add_mixed(k, l, scale * dot(axis, at_k.moved[kVelocity]),
                  scale * dot(axis, at_k.moved[kStep]));
      }
      form.add(k, form.q_column(l), form.q_column(k), both);
      form.add(k, form.v_column(l), form.v_column(k),
               scale * dot(axis, at_k.pushed[kVelocity][kVelocity]));
      if (use && use[k]) {
        form.mixed[k][form.v_column(l)] += scale * dot(axis, at_k.pushed[kVelocity][kStep]);
      }
      if (use && use[l] && l != k) {
        form.mixed[l][form.v_column(k)] += scale * dot(axis, at_k.pushed[kStep][kVelocity]);
      }
    }
}

// nu . D w over the rows and columns in `use`
void add_group(const ModelView& m, const DataView& d, FluidPart part, const double* nu,
               const double* w, double scale, const unsigned char* use, const QuadraticForm& form,
               Arena& arena) {
  const DataView virt = at_velocity(m, d, nu, arena), moving = at_velocity(m, d, w, arena);
  DofChange* change = arena.take<DofChange>(m.nv);
  for (int k = 0; k < m.nv; k++) {
    change[k] = {{load_motion(virt.cdof_dot + 6 * k), velocity_change(m, d, k),
                  load_motion(moving.cdof_dot + 6 * k)}};
  }
  MotionSum* sums = arena.zeros<MotionSum>(m.nbody);
  visit_elements(m, d, [&](const FluidElement& e) {
    double left[6], right[6], pushed[6] = {}, pulled[6] = {};
    e.localize(load_motion(virt.cvel + 6 * e.body), left);
    e.localize(load_motion(moving.cvel + 6 * e.body), right);
    const DampingBend bend =
        bend_damping(implicit_part(e, part), is_symmetrized(m, e.body, part), left, right);
    for (int i = 0; i < 6; i++)
      for (int j = 0; j < 6; j++) {
        pushed[i] += bend.b[6 * i + j] * right[j];
        pulled[j] += bend.b[6 * i + j] * left[i];
      }
    MotionSum& c = sums[e.body];
    c.add(e, kVirtual, pushed), c.add(e, kVelocity, bend.slope), c.add(e, kStep, pulled);
    c.add(e, kVirtual, kStep, bend.b), c.add(e, kVirtual, kVelocity, bend.right);
    c.add(e, kStep, kVelocity, bend.left), c.add(e, kVelocity, kVelocity, bend.second);
  });
  sum_over_subtrees(m, sums);
  add_sum(m, d, sums, change, scale, use, form, arena);
}

}  // namespace

void add_fluid_hessian(const ModelView& m, const DataView& d, const double* mu,
                       const QuadraticForm& form, Arena& arena) {
  if (!fluid_enabled(m)) return;
  const DataView virt = at_velocity(m, d, mu, arena);
  DofChange* change = arena.zeros<DofChange>(m.nv);
  for (int k = 0; k < m.nv; k++) {
    change[k].by[kVirtual] = load_motion(virt.cdof_dot + 6 * k);
    change[k].by[kVelocity] = velocity_change(m, d, k);
  }
  MotionSum* sums = arena.zeros<MotionSum>(m.nbody);
  visit_elements(m, d, [&](const FluidElement& e) {
    double along[6], force[6], rate[36], second[36], pulled[6] = {};
    e.localize(load_motion(virt.cvel + 6 * e.body), along);
    differentiate_force(e, force, rate);
    bend_force(e, along, second);
    for (int i = 0; i < 6; i++)
      for (int j = 0; j < 6; j++) pulled[j] += rate[6 * i + j] * along[i];
    MotionSum& c = sums[e.body];
    c.add(e, kVirtual, force), c.add(e, kVelocity, pulled);
    c.add(e, kVirtual, kVelocity, rate), c.add(e, kVelocity, kVelocity, second);
  });
  sum_over_subtrees(m, sums);
  add_sum(m, d, sums, change, 1, nullptr, form, arena);
}

void add_fluid_damping_hessian(const ModelView& m, const DataView& d, FluidPart part,
                               bool full_pattern, const double* nu, const double* w, double scale,
                               const QuadraticForm& form, Arena& arena) {
  if (!fluid_enabled(m)) return;
  // one pass per group of rows, with nu and w restricted to the dofs of the group
  double *own_nu = arena.take<double>(m.nv), *own_w = arena.take<double>(m.nv);
  unsigned char* use = arena.take<unsigned char>(m.nv);
  for (int group = 0; group < (full_pattern ? 1 : kMaxGroups); group++) {
    bool any = false;
    for (int i = 0; i < m.nv; i++) {
      use[i] = full_pattern || row_group(m, part, i) == group;
      own_nu[i] = use[i] ? nu[i] : 0;
      own_w[i] = use[i] ? w[i] : 0;
      any |= use[i];
    }
    if (any) add_group(m, d, part, own_nu, own_w, scale, use, form, arena);
  }
}

}  // namespace mujacobian

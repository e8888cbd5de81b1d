#include "second_order/path.h"

#include "actuation/curvature.h"
#include "forces/implicit.h"
#include "forces/tendon.h"

namespace mujacobian {
namespace {

// The columns that the variables of a path force depend on: positions by the length, velocities by
// the rate, and inputs.
struct PathColumns {
  int n;
  int* column;
  int* variable;  // of PathCurvature
  double* slope;  // derivative of this variable with respect to the column
};

PathColumns path_columns(const PathCurvature& curved, const QuadraticForm& form, Arena& arena) {
  const Path& p = curved.of->path;
  const int input_count = curved.count ? curved.count - 2 : 0;
  const int n = 2 * p.n + input_count;
  PathColumns c{n, arena.take<int>(n), arena.take<int>(n), arena.take<double>(n)};
  for (int a = 0; a < p.n; a++) {
    c.column[a] = form.q_column(p.dofs[a]), c.column[p.n + a] = form.v_column(p.dofs[a]);
    c.variable[a] = 0, c.variable[p.n + a] = 1;
    c.slope[a] = p.dlength[a], c.slope[p.n + a] = p.moment[a];
  }
  for (int a = 0; a < input_count; a++) {
    c.column[2 * p.n + a] = form.layout.input_column[curved.inputs[a]];
    c.variable[2 * p.n + a] = 2 + a;
    c.slope[2 * p.n + a] = 1;
  }
  return c;
}

// Adds the second derivative `second` (count, count) of a function of the variables.
void add_second(const PathColumns& c, const double* second, int count, double weight, int dof,
                const QuadraticForm& form) {
  for (int a = 0; a < c.n; a++)
    for (int b = 0; b <= a; b++) {
      const double value = second[c.variable[a] * count + c.variable[b]];
      if (value == 0) continue;
      form.add(dof, c.column[a], c.column[b], weight * c.slope[a] * c.slope[b] * value);
    }
}

// Adds `weight` d2l/dq2.
void add_length(const Path& p, const double* second, double weight, const QuadraticForm& form) {
  for (int a = 0; a < p.n; a++)
    for (int b = 0; b <= a; b++) {
      form.add(p.dofs[0], form.q_column(p.dofs[a]), form.q_column(p.dofs[b]),
               weight * second[a * p.n + b]);
    }
}

// Returns mu . m over the dofs that are not frozen.
double contract(const Path& p, const double* mu, const unsigned char* frozen) {
  double sum = 0;
  for (int a = 0; a < p.n; a++) {
    if (!frozen || !frozen[p.dofs[a]]) sum += mu[p.dofs[a]] * p.moment[a];
  }
  return sum;
}

// The damping of a path in the matrix of an implicit integrator: nu . D w = b sum_j t_j w_j, where
// t_j = m_j sum_i nu_i m_i over the pattern of D.                                        (HES-22)
struct ImplicitDamping {
  double* t;
  double sum;
};
ImplicitDamping implicit_damping(const ModelView& m, const StepDifferential& s, const Path& p,
                                 const double* nu, Arena& arena) {
  ImplicitDamping r{arena.take<double>(p.n), 0};
  for (int b = 0; b < p.n; b++) {
    double t = 0;
    for (int a = 0; a < p.n; a++) {
      if (!in_damping(m, s.forward.tree, s.step.block, p.dofs[a], p.dofs[b])) continue;
      t += nu[p.dofs[a]] * p.moment[a];
    }
    r.t[b] = t * p.moment[b];
    r.sum += r.t[b] * s.step.w[p.dofs[b]];
  }
  return r;
}

// Adds the derivatives of h b sum_j t_j w_j with respect to w and the inputs.
void add_damping_slopes(const PathForce& f, const ImplicitDamping& r, double h,
                        const QuadraticForm& form) {
  const Path& p = f.path;
  for (int b = 0; b < p.n; b++) {
    double* row = form.mixed[p.dofs[b]];
    const double t = h * r.t[b];
    for (int a = 0; a < p.n; a++) {
      row[form.q_column(p.dofs[a])] += t * f.damping_dlength * p.dlength[a];
      row[form.v_column(p.dofs[a])] += t * f.damping_drate * p.moment[a];
    }
    for (int k = 0; k < f.input_count; k++) {
      row[form.layout.input_column[f.inputs[k].input]] += t * f.inputs[k].damping;
    }
  }
}

}  // namespace

void add_path_curvature(const PathCurvature& c, double weight, const QuadraticForm& form,
                        Arena& arena) {
  const Path& p = c.of->path;
  if (c.count) {
    add_second(path_columns(c, form, arena), c.force, c.count, weight, p.dofs[0], form);
  }
  if (c.length) add_length(p, c.length, weight * c.of->dlength, form);
}

void add_path_hessians(const ModelView& m, const DataView& d, const StepDifferential& s,
                       const double* mu, const double* nu, const QuadraticForm& form,
                       Arena& arena) {
  const PathForces& paths = s.forward.paths;
  const double h = m.opt.timestep;
  PathCurvature* all = arena.take<PathCurvature>(paths.tendon_count + paths.actuation.weight_count);
  tendon_curvatures(m, d, paths.tendon, all, arena);
  const int actuators = actuator_curvatures(m, d, paths.actuation, all + paths.tendon_count, arena);
  for (int k = 0; k < paths.tendon_count + actuators; k++) {
    // mu . m^T F; the rows of saturated joints are omitted for actuators
    const PathCurvature& c = all[k];
    const Path& p = c.of->path;
    if (p.n == 0) continue;
    const unsigned char* frozen = k < paths.tendon_count ? nullptr : paths.actuation.frozen;
    add_path_curvature(c, contract(p, mu, frozen), form, arena);

    // nu . h D w
    if (!is_implicit(m)) continue;
    const ImplicitDamping damping = implicit_damping(m, s, p, nu, arena);
    const PathColumns columns = path_columns(c, form, arena);
    if (c.count) add_second(columns, c.damping, c.count, h * damping.sum, p.dofs[0], form);
    if (c.length) add_length(p, c.length, h * damping.sum * c.of->damping_dlength, form);
    add_damping_slopes(*c.of, damping, h, form);
  }
}

}  // namespace mujacobian

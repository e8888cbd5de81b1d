#include "second_order/hessian.h"

#include <cstring>

#include "contact/collider.h"
#include "forces/external.h"
#include "forces/fluid_curvature.h"
#include "forces/passive.h"
#include "layout/sleep.h"
#include "layout/unsupported.h"
#include "linear/combine.h"
#include "linear/dense.h"
#include "second_order/activation.h"
#include "second_order/damping.h"
#include "second_order/exact_diagonal.h"
#include "second_order/forms.h"
#include "second_order/metric.h"
#include "second_order/noslip.h"
#include "second_order/path.h"
#include "second_order/point_equality.h"
#include "second_order/row.h"
#include "second_order/runge_kutta.h"
#include "second_order/sensor.h"
#include "second_order/support.h"
#include "second_order/tendon_inertia.h"
#include "second_order/turn.h"
#include "sensor/sensor.h"
#include "step/position_update.h"
#include "tree/inverse_dynamics_hessian.h"

namespace mujacobian {
namespace {

// Returns the multipliers for the cotangents `next` of the next state and `through_acceleration` of
// the acceleration that solves g = 0. `sweeps` are those of the noslip solver; null: none.
Multipliers solve_multipliers(const ModelView& m, const DataView& d, const StepDifferential& step,
                              const double* next, const double* through_acceleration,
                              const CurvedSweeps* sweeps, Arena& arena) {
  StepDifferential s = step;
  s.forward.noslip.first = nullptr;  // the sweeps are not part of g = 0
  const DofRows& residual = s.forward.residual;
  double* through_w = arena.take<double>(m.nv);
  integrate_cotangent(m, d, s.step.w, next, through_w, arena.take<double>(state_size(m)));
  const DofRows z = make_vector(m, residual, arena), y = make_vector(m, residual, arena);
  for (int i = 0; i < m.nv; i++) {
    z.row[i][0] = through_w[i];
    (s.two_systems ? y : z).row[i][0] += through_acceleration[i];
  }
  if (sweeps) add_sweep_cotangent(*sweeps, s.forward.blocks, y);
  for (int c = 0; c < residual.count; c++) s.solve_transposed(m, d, c, z, y, arena);
  Multipliers mu{arena.take<double>(m.nv), arena.take<double>(m.nv)};
  for (int i = 0; i < m.nv; i++) {
    mu.s[i] = z.row[i][0];
    mu.g[i] = s.solves_acceleration(residual.component[i]) ? y.row[i][0] : mu.s[i];
  }
  return mu;
}

// Returns the sweeps of the noslip solver, null if there are none. Throws Unsupported if sensors
// have a cotangent of the acceleration after the sweeps.                                  (HES-63)
const CurvedSweeps* find_sweeps(const ModelView& m, const DataView& d, const StepDifferential& s,
                                const double* next, const double* through_acceleration,
                                Arena& arena) {
  if (!s.forward.noslip.first) return nullptr;
  const char* element = "option noslip_iterations";
  if (!s.two_systems) throw Unsupported(element, kSweptStages);
  for (int i = 0; i < m.nv; i++) {
    if (through_acceleration[i] == 0) continue;
    throw Unsupported(element, "second derivatives of sensors of accelerations are not supported");
  }
  const Multipliers mu = solve_multipliers(m, d, s, next, through_acceleration, nullptr, arena);
  return curve_sweeps(m, d, s.forward, mu.s, arena);
}

// Returns `x` with the opposite sign.
const double* negated(const double* x, int n, Arena& arena) {
  double* y = arena.take<double>(n);
  for (int i = 0; i < n; i++) y[i] = -x[i];
  return y;
}

// Adds the second derivatives of the position update with respect to q, v and w.          (HES-4)
void add_turns(const ModelView& m, const DataView& d, const double* w, const double* next,
               const QuadraticForm& form) {
  const double h = m.opt.timestep;
  visit_joints(
      m, d, w, [](int) {},
      [&](int dof, Vec3 turn) {
        const TurnCurvature c = turn_curvature(turn, load3(next + dof));
        for (int a = 0; a < 3; a++)
          for (int b = 0; b < 3; b++) {
            const int q = form.q_column(dof + a), v = form.v_column(dof + b);
            form.q(dof + a)[v] += h * c.mixed(a, b);
            form.v(dof + a)[v] += 0.5 * h * h * c.turn(a, b);
            form.mixed[dof + b][q] += h * h * c.mixed(a, b);
            form.mixed[dof + a][v] += h * h * h * c.turn(a, b);
          }
      });
}

// Adds half of the second derivative with respect to w twice, times dw, to the rows of w. (HES-8)
void add_turned_rows(const ModelView& m, const DataView& d, const StepDifferential& s,
                     const double* next, const QuadraticForm& form) {
  const double h = m.opt.timestep;
  visit_joints(
      m, d, s.step.w, [](int) {},
      [&](int dof, Vec3 turn) {
        const TurnCurvature c = turn_curvature(turn, load3(next + dof));
        const Component& part = form.layout.components[form.layout.component[dof]];
        for (int a = 0; a < 3; a++) {
          const Coefficients row{c.turn.m + 3 * a, 0, 1, 0.5 * h * h * h * h};
          combine_rows<true>(form.mixed[dof + a], 1, row, s.step_rows.row[dof], 3, part.stride);
        }
      });
}

// Returns forms that are zero.
StepForms make_forms(const ModelView& m, const StepDifferential& s, Arena& arena) {
  const DofRows& residual = s.forward.residual;
  StepForms forms{make_quadratic_form(m, residual, arena), {}};
  forms.early = forms.late;
  if (!s.two_systems) return forms;
  forms.early.mixed = make_like(m, residual, arena).row;
  for (int i = 0; i < m.nv; i++) {
    if (!solves_both(s, residual.component[i])) forms.early.mixed[i] = forms.late.mixed[i];
  }
  return forms;
}

// Returns the step with w - a for the acceleration a of the optimum, which that after the sweeps of
// the noslip solver replaces.
StepDifferential at_optimum(const ModelView& m, const StepDifferential& step, Arena& arena) {
  StepDifferential s = step;
  if (!s.forward.noslip.first) return s;
  double* lag = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) {
    const bool solved = s.solves_acceleration(s.forward.residual.component[i]);
    lag[i] = solved ? s.step.w[i] - s.forward.solved[i] : 0;
  }
  s.lag = lag;
  return s;
}

// Adds the second derivatives of nu . M (w - a).                                          (HES-7)
void add_lag_hessian(const ModelView& m, const DataView& d, const StepDifferential& s,
                     const double* nu, const StepForms& forms, Arena& arena) {
  if (!s.two_systems) return;
  const DofRows& residual = s.forward.residual;
  double* acting = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) acting[i] = solves_both(s, residual.component[i]) ? nu[i] : 0;
  QuadraticForm form = forms.late;
  form.mixed = make_like(m, residual, arena).row;
  add_inertia_hessian(m, d, s.forward.tree, s.lag, acting, form, arena);
  add_tendon_inertia_hessian(m, d, s.forward.tree, s.lag, acting, form, arena);
  for (int i = 0; i < m.nv; i++) {
    const int c = residual.component[i];
    for (int k = 0; solves_both(s, c) && k < residual.components[c].nv; k++) {
      forms.late.mixed[i][k] += form.mixed[i][k];
      forms.early.mixed[i][k] -= form.mixed[i][k];
    }
  }
}

// Returns the second derivatives of one component: G + G^T + S^T X + X^T S.              (HES-8)
const double* assemble(const ModelView& m, const DataView& d, const StepCurvature& curved, int c,
                       Arena& arena) {
  const auto& [s, mu, forms, sliding, cross, sweeps] = curved;
  const Component& part = forms.late.layout.components[c];
  const bool swept = sweeps && s.forward.constrained[c];
  const DofRows& change = swept ? s.forward.noslip.start : s.forward.residual;
  const int n = part.end_column(), stride = part.stride, nv = part.nv;
  double* G = forms.late.half[c];
  int* scratch = arena.take<int>(nv);
  // the rows of a component are consecutive
  auto add = [&](const QuadraticForm& form, const DofRows& solution) {
    add_sparse_product(G, stride, form.mixed[part.dofs[0]], stride, solution.row[part.dofs[0]],
                       stride, n, n, nv, scratch);
  };
  add(forms.late, s.step_rows);
  if (solves_both(s, c)) add(forms.early, change);
  if (swept) add_sweep_products(m, d, s.forward, *sweeps, change, c, G, arena);
  add_transpose(G, stride, n);
  add_sliding_rows(sliding, change, c, G, arena);
  return G;
}

// Consecutive columns of a component that belong to one kind of input: the state (0), the controls
// (1) or the applied forces (2).
struct Segment {
  int kind, from, n;
  const int* index;  // of the dofs, activations or controls; null: all entries of the input
  int offset;        // of the first of them in the input

  int place(int k) const { return offset + (index ? index[k] : k); }
  bool is_run() const { return !index || (n > 0 && index[n - 1] - index[0] == n - 1); }
};

void copy(const Segment& s, const double* from, double* to) {
  if (s.is_run()) {
    std::memcpy(to + s.place(0), from + s.from, s.n * sizeof(double));
    return;
  }
  for (int k = 0; k < s.n; k++) to[s.place(k)] = from[s.from + k];
}

// Returns whether the component has all dofs, activations and controls.
bool is_whole(const ModelView& m, const Component& part) {
  return part.nv == m.nv && part.na == m.na && part.nu == m.nu;
}

// Copies the second derivatives of a component into the outputs.
void write(const ModelView& m, const Component& part, const double* H, const HessianOutputs& out) {
  double* const blocks[3][3] = {
      {out.xx, out.xu, out.xf}, {nullptr, out.uu, out.uf}, {nullptr, nullptr, out.ff}};
  const std::ptrdiff_t width[3] = {state_size(m), m.nu, m.nv};
  Segment segments[5];
  int count = 0;
  if (is_whole(m, part)) {
    segments[count++] = {0, 0, part.ctrl_column(), nullptr, 0};
  } else {
    segments[count++] = {0, 0, part.nv, part.dofs, 0};
    segments[count++] = {0, part.nv, part.nv, part.dofs, m.nv};
    segments[count++] = {0, part.act_column(), part.na, part.acts, 2 * m.nv};
  }
  segments[count++] = {1, part.ctrl_column(), part.nu, part.ctrls, 0};
  segments[count++] = {2, part.force_column(), part.nf, part.dofs, 0};
  for (int i = 0; i < count; i++) {
    const Segment& rows = segments[i];
    for (int k = 0; k < rows.n; k++) {
      const double* from = H + static_cast<std::ptrdiff_t>(rows.from + k) * part.stride;
      for (int j = 0; j < count; j++) {
        const int kind = segments[j].kind;
        double* block = blocks[rows.kind][kind];
        if (block && segments[j].n) copy(segments[j], from, block + rows.place(k) * width[kind]);
      }
    }
  }
}

// Sets all blocks to zero.
void clear(const ModelView& m, const HessianOutputs& out) {
  const std::size_t nx = state_size(m), nu = m.nu, nv = m.nv;
  auto zero = [](double* block, std::size_t size) {
    if (block) std::memset(block, 0, size * sizeof(double));
  };
  zero(out.xx, nx * nx), zero(out.xu, nx * nu), zero(out.uu, nu * nu);
  zero(out.xf, nx * nv), zero(out.uf, nu * nv), zero(out.ff, nv * nv);
}

// Writes the second derivatives of a step whose systems are solved.
void write_hessian(const ModelView& m, const DataView& d, const StepCurvature& curved,
                   const StepCotangent& given, const HessianOutputs& out, Arena& arena) {
  add_turned_rows(m, d, curved.s, given.next, curved.forms.late);
  write_curvature(m, d, curved, out, arena);
  visit_activation_hessians(m, d, curved.s.forward.paths.actuation, ActivationValue::kNext,
                            given.next + 2 * m.nv, arena,
                            [&](int j, int k, double second) { add_entry(m, out, j, k, second); });
}

}  // namespace

bool reads_solution(const ModelView& m, const StepCotangent& given, Arena& arena) {
  const unsigned char* weighted = weighted_sensors(m, given.sensors, arena);
  return weighted && senses_solution(m, weighted);
}

void add_entry(const ModelView& m, const HessianOutputs& out, int j, int k, double second) {
  const int nx = state_size(m);
  const bool of_state = j < nx, with_state = k < nx;
  double* block = with_state ? (of_state ? out.xx : nullptr) : of_state ? out.xu : out.uu;
  if (!block) return;
  const std::ptrdiff_t width = with_state ? nx : m.nu;
  block[(of_state ? j : j - nx) * width + (with_state ? k : k - nx)] += second;
}

StepCurvature differentiate_twice(const ModelView& m, const DataView& d, const StepCotangent& given,
                                  bool forces, Arena& arena) {
  const unsigned char* weighted = weighted_sensors(m, given.sensors, arena);
  const bool senses = weighted && senses_acceleration(m, weighted);
  const StepDifferential s = differentiate_step(m, d, forces, senses, arena);
  return curve_step(m, d, s, given, arena.zeros<double>(m.nv), arena);
}

StepCurvature curve_step(const ModelView& m, const DataView& d, const StepDifferential& step,
                         const StepCotangent& given, double* through_acceleration, Arena& arena) {
  const StepDifferential s = at_optimum(m, step, arena);
  const Blocks& blocks = s.forward.blocks;

  // the second derivatives of sensors
  const StepForms forms = make_forms(m, s, arena);
  const auto& [late, early] = forms;
  const CrossTerm* cross = nullptr;
  const SlidingRows* sliding = nullptr;
  if (weighted_sensors(m, given.sensors, arena)) {
    add_sensor_curvatures(m, d, s, given.sensors, forms, through_acceleration, cross, sliding,
                          arena);
  }

  // the second derivative of the position update, and of -mu . g - nu . s
  const CurvedSweeps* sweeps = find_sweeps(m, d, s, given.next, through_acceleration, arena);
  const RowShift* shift = sweeps ? sweeps->shift : nullptr;
  const Multipliers mu =
      solve_multipliers(m, d, s, given.next, through_acceleration, sweeps, arena);
  const double* minus_g = negated(mu.g, m.nv, arena);
  const double* minus_s = negated(mu.s, m.nv, arena);
  add_inverse_dynamics_hessian(m, d, s.forward.tree, s.at, minus_g, early, arena);
  add_tendon_inertia_hessian(m, d, s.forward.tree, s.at, minus_g, early, arena);
  add_tendon_bias_hessian(m, d, minus_g, early, arena);
  add_lag_hessian(m, d, s, minus_s, forms, arena);
  add_applied_hessian(m, d, mu.g, late, arena);
  add_gravity_compensation_hessian(m, d, s.forward.paths.actuation.frozen, mu.g, late, arena);
  add_passive_hessian(m, d, mu.g, late);
  add_fluid_hessian(m, d, mu.g, late, arena);
  add_path_hessians(m, d, s, mu.g, mu.s, late, arena);
  add_row_hessians(m, d, blocks, s.forward.solved, minus_g, shift, early, arena);
  add_point_equality_hessians(m, d, blocks, s.forward.solved, minus_g, early, arena);
  add_contact_hessians(m, d, blocks, s.forward.solved, minus_g, shift, early, sliding, arena);
  if (sweeps) add_sweep_hessian(m, d, s.forward, *sweeps, early, arena);
  add_exact_diagonal_hessian(m, d, s.forward, minus_g, early, arena);
  // the discrete integrator has only one equation
  add_damping_hessian(m, d, s, has_metric(m) ? minus_g : minus_s, late, arena);
  add_metric_hessian(m, d, s, minus_g, late, arena);
  add_turns(m, d, s.step.w, given.next, late);
  return {s, mu, forms, sliding, cross, sweeps};
}

void hessian(const ModelView& m, const KeptStep& step, const StepCotangent& given,
             const HessianOutputs& out, Arena& arena) {
  require_second_order(m, given.sensors);
  const DataView& d = step.data();
  double* through_acceleration = arena.zeros<double>(m.nv);
  write_hessian(m, d, curve_step(m, d, step.differential(), given, through_acceleration, arena),
                given, out, arena);
}

void hessian(const ModelView& given_m, const DataView& given_d, const StepCotangent& given,
             const HessianOutputs& out, Arena& arena) {
  require_awake(given_m, given_d);
  require_second_order(given_m, given.sensors);
  const auto& [m, d] = converge_collider(given_m, given_d, reads_solution(given_m, given, arena));
  const bool forces = out.xf || out.uf || out.ff;
  if (m.opt.integrator == integrator::kRK4) {
    return runge_kutta_hessian(m, d, given, forces, out, arena);
  }
  write_step_hessian(m, d, differentiate_twice(m, d, given, forces, arena), given, out, arena);
}

void write_step_hessian(const ModelView& m, const DataView& d, const StepCurvature& curved,
                        const StepCotangent& given, const HessianOutputs& out, Arena& arena) {
  const StepDifferential& s = curved.s;
  const DofRows& residual = s.forward.residual;
  for (int c = 0; c < residual.count; c++) {
    s.solve(m, d, c, 0, residual.components[c].end_column(), arena);
  }
  write_hessian(m, d, curved, given, out, arena);
}

void write_curvature(const ModelView& m, const DataView& d, const StepCurvature& curved,
                     const HessianOutputs& out, Arena& arena) {
  const DofRows& residual = curved.s.forward.residual;
  if (residual.count != 1 || !is_whole(m, residual.components[0])) clear(m, out);
  for (int c = 0; c < residual.count; c++) {
    write(m, residual.components[c], assemble(m, d, curved, c, arena), out);
  }
  for (const CrossTerm* term = curved.cross; term; term = term->next) {
    add_entry(m, out, term->j, term->k, term->second);
    add_entry(m, out, term->k, term->j, term->second);
  }
}

HessianOutputs batch_item(const ModelView& m, const HessianOutputs& out, std::size_t index) {
  const std::size_t nx = state_size(m), nu = m.nu, nv = m.nv;
  auto item = [&](double* block, std::size_t size) {
    return block ? block + index * size : nullptr;
  };
  return {item(out.xx, nx * nx), item(out.xu, nx * nu), item(out.uu, nu * nu),
          item(out.xf, nx * nv), item(out.uf, nu * nv), item(out.ff, nv * nv)};
}

}  // namespace mujacobian

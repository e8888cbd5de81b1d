#include "second_order/product.h"

#include <cstring>

#include "contact/collider.h"
#include "layout/enums.h"
#include "layout/sleep.h"
#include "layout/unsupported.h"
#include "linear/lanes.h"
#include "second_order/activation.h"
#include "second_order/formed_step.h"
#include "second_order/forms.h"
#include "second_order/runge_kutta.h"
#include "second_order/support.h"
#include "second_order/turn.h"
#include "step/activation.h"
#include "step/position_update.h"

namespace mujacobian {
namespace {

// Returns x . y, where both are padded to whole lanes, and the padding of one of them is zero.
double dot(const double* x, const double* y, int n) {
  Lanes sum[2] = {broadcast(0), broadcast(0)};
  int k = 0;
  for (; k + kLanes < n; k += 2 * kLanes) {
    sum[0] += load_lanes(x + k) * load_lanes(y + k);
    sum[1] += load_lanes(x + k + kLanes) * load_lanes(y + k + kLanes);
  }
  if (k < n) sum[0] += load_lanes(x + k) * load_lanes(y + k);
  const Lanes total = sum[0] + sum[1];
  return (total[0] + total[1]) + (total[2] + total[3]);
}

// y += s x, padded to whole lanes
void add_scaled(double* y, double s, const double* x, int n) {
  const Lanes scale = broadcast(s);
  for (int k = 0; k < n; k += kLanes) {
    store_lanes(y + k, load_lanes(y + k) + scale * load_lanes(x + k));
  }
}

// y += x * scale; null: not computed
void add_slopes(double* y, double scale, const double* x, int n) {
  for (int i = 0; y && i < n; i++) y[i] += scale * x[i];
}

// Returns x . y, where x may be null: zero.
double dot_slopes(const double* x, const double* y, int n) {
  if (!x) return 0;
  Lanes sum = broadcast(0);
  int k = 0;
  for (; k + kLanes <= n; k += kLanes) sum += load_lanes(x + k) * load_lanes(y + k);
  double total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  for (; k < n; k++) total += x[k] * y[k];
  return total;
}

// Returns the direction in the columns of a component, padded to its stride.
const double* gather(const ModelView& m, const Component& part, const StepDirection& along,
                     Arena& arena) {
  double* x = arena.zeros<double>(part.stride);
  const double* inputs[3] = {along.state, along.ctrl, along.force};
  visit_columns(m, part, [&](int column, int input, int index) {
    if (inputs[input]) x[column] = inputs[input][index];
  });
  return x;
}

// Adds numbers per column of a component to the cotangents of the inputs.
void scatter(const ModelView& m, const Component& part, const double* x,
             const InputCotangent& out) {
  double* outputs[3] = {out.state, out.ctrl, out.force};
  visit_columns(m, part, [&](int column, int input, int index) {
    if (outputs[input]) outputs[input][index] += x[column];
  });
}

// A change of both accelerations, or a cotangent of them, one number per dof. Without a second
// system they are the same.
struct Accelerations {
  DofRows late, early;  // of w, and of the acceleration that solves g = 0
};

Accelerations make_accelerations(const ModelView& m, const StepDifferential& s, Arena& arena) {
  const DofRows late = make_vector(m, s.forward.residual, arena);
  return {late, s.two_systems ? make_vector(m, s.forward.residual, arena) : late};
}

// Returns the row that belongs to the acceleration of dof i at which g is differentiated.
double* early_row(const StepDifferential& s, const Accelerations& x, int i) {
  const bool both = solves_both(s, s.forward.residual.component[i]);
  return (both || !s.two_systems ? x.early : x.late).row[i];
}

// One number per dof for each acceleration, without gaps. Those of w are zero where no second
// system is solved.
struct FlatRows {
  double *early, *late;  // (nv)
};

FlatRows flatten(const ModelView& m, const StepDifferential& s, const Accelerations& x,
                 Arena& arena) {
  const FlatRows flat{arena.take<double>(m.nv), arena.zeros<double>(m.nv)};
  for (int i = 0; i < m.nv; i++) {
    flat.early[i] = early_row(s, x, i)[0];
    if (s.solves_step(s.forward.residual.component[i])) flat.late[i] = x.late.row[i][0];
  }
  return flat;
}

// Adds a change of the parameters times rows of both accelerations, (count, nv) each.
void add_rows(const ModelView& m, const StepDifferential& s, const CurvedParameters& params,
              const double* early, const double* late, const Accelerations& to, Arena& arena) {
  const FlatRows sum{arena.zeros<double>(m.nv), arena.zeros<double>(m.nv)};
  for (int k = 0; k < params.count; k++) {
    if (params.along[k] == 0) continue;
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(k) * m.nv;
    add_slopes(sum.early, params.along[k], early + row, m.nv);
    add_slopes(sum.late, params.along[k], late + row, m.nv);
  }
  for (int i = 0; i < m.nv; i++) {
    early_row(s, to, i)[0] += sum.early[i];
    if (s.solves_step(s.forward.residual.component[i])) to.late.row[i][0] += sum.late[i];
  }
}

// Returns the change of the accelerations along a direction: S along.
Accelerations push(const ModelView& m, const DataView& d, const StepDifferential& s,
                   const StepDirection& along, const CurvedParameters* params,
                   const ParameterCurvature& curved, Arena& arena) {
  const Accelerations change = make_accelerations(m, s, arena);
  StepDifferential sides = s;
  sides.forward.residual = change.early;
  sides.step_rows = change.late;
  if (params) add_rows(m, s, *params, curved.early, curved.late, change, arena);
  const DofRows& residual = s.forward.residual;
  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    const double* x = gather(m, part, along, arena);
    for (int i = 0; i < part.nv; i++) {
      const int dof = part.dofs[i], n = part.end_column();
      if (s.solves_acceleration(c)) change.early.row[dof][0] += dot(residual.row[dof], x, n);
      if (s.solves_step(c)) change.late.row[dof][0] += dot(s.step_rows.row[dof], x, n);
    }
    sides.solve(m, d, c, 0, 1, arena);
  }
  return change;
}

// Adds S^T y to numbers per column of component c, where y has been solved for by
// `solve_transposed`.
void add_transposed(const StepDifferential& s, int c, const Accelerations& y, double* columns) {
  const DofRows& residual = s.forward.residual;
  const Component& part = residual.components[c];
  for (int i = 0; i < part.nv; i++) {
    const int dof = part.dofs[i], n = part.end_column();
    if (s.solves_step(c)) add_scaled(columns, y.late.row[dof][0], s.step_rows.row[dof], n);
    if (s.solves_acceleration(c)) add_scaled(columns, y.early.row[dof][0], residual.row[dof], n);
  }
}

// Adds the second derivative of the position update with respect to w twice, times dw.    (HES-4)
void add_turn_product(const ModelView& m, const DataView& d, const StepDifferential& s,
                      const double* next, const DofRows& dw, const DofRows& out) {
  const double h = m.opt.timestep;
  visit_joints(
      m, d, s.step.w, [](int) {},
      [&](int dof, Vec3 turn) {
        const Vec3 along{dw.row[dof][0], dw.row[dof + 1][0], dw.row[dof + 2][0]};
        const Vec3 product = turn_curvature(turn, load3(next + dof)).turn * along;
        const double scale = h * h * h * h;
        out.row[dof][0] += scale * product.x;
        out.row[dof + 1][0] += scale * product.y;
        out.row[dof + 2][0] += scale * product.z;
      });
}

// Adds (G + G^T) x to numbers per column of component c.
void add_form_product(const QuadraticForm& form, int c, const double* x, double* columns) {
  const Component& part = form.layout.components[c];
  const int n = part.end_column();
  for (int j = 0; j < n; j++) {
    const double* row = form.half[c] + static_cast<std::ptrdiff_t>(j) * part.stride;
    columns[j] += dot(row, x, n);
    if (x[j] != 0) add_scaled(columns, x[j], row, n);
  }
}

// Adds X x to `rows`, and X^T times the change of an acceleration to numbers per column.
void add_mixed_product(const QuadraticForm& form, int c, const double* x, const DofRows& change,
                       const DofRows& rows, double* columns) {
  const Component& part = form.layout.components[c];
  for (int i = 0; i < part.nv; i++) {
    const int dof = part.dofs[i];
    rows.row[dof][0] += dot(form.mixed[dof], x, part.end_column());
    add_scaled(columns, change.row[dof][0], form.mixed[dof], part.end_column());
  }
}

void clear(const ModelView& m, const InputCotangent& out) {
  auto zero = [](double* x, int n) {
    if (x) std::memset(x, 0, n * sizeof(double));
  };
  zero(out.state, state_size(m)), zero(out.ctrl, m.nu), zero(out.force, m.nv);
}

// Adds the part of (A, B)^T next that belongs to the next activations.
void pull_activations(const ModelView& m, const DataView& d, const StepDifferential& s,
                      const double* next, const InputCotangent& out, Arena& arena) {
  for (int i = 0; i < m.na; i++) {
    const double weight = next[2 * m.nv + i];
    visit_activation(
        m, d, s.forward.paths.actuation, i, arena,
        [&](int column, double value) {
          if (out.state) out.state[column] += weight * value;
        },
        [&](int column, double value) {
          if (out.ctrl) out.ctrl[column] += weight * value;
        });
  }
}

// Writes (A, B, Bf)^T next, with the multipliers of the cotangent.                        (ADJ-3)
void pull_once(const ModelView& m, const DataView& d, const StepCurvature& curved,
               const double* next, const InputCotangent& out, Arena& arena) {
  const StepDifferential& s = curved.s;
  const DofRows& residual = s.forward.residual;
  clear(m, out);
  if (out.state) {
    integrate_cotangent(m, d, s.step.w, next, arena.take<double>(m.nv), out.state);
  }
  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    double* columns = arena.zeros<double>(part.stride);
    for (int i = 0; i < part.nv; i++) {
      const int dof = part.dofs[i], n = part.end_column();
      if (s.solves_step(c)) add_scaled(columns, curved.mu.s[dof], s.step_rows.row[dof], n);
      if (s.solves_acceleration(c)) add_scaled(columns, curved.mu.g[dof], residual.row[dof], n);
    }
    scatter(m, part, columns, out);
  }
  pull_activations(m, d, s, next, out, arena);
}

// Adds the product of the second derivatives of the next activations with a direction.
void add_activation_product(const ModelView& m, const DataView& d, const Actuation& actuation,
                            const double* next, const StepDirection& along,
                            const InputCotangent& out, Arena& arena) {
  const int nx = state_size(m);
  visit_activation_hessians(m, d, actuation, ActivationValue::kNext, next + 2 * m.nv, arena,
                            [&](int j, int k, double second) {
                              const double* x = k < nx ? along.state : along.ctrl;
                              double* y = j < nx ? out.state : out.ctrl;
                              if (x && y) y[j < nx ? j : j - nx] += second * x[k < nx ? k : k - nx];
                            });
}

// Adds the slopes of phi along the direction of the parameters to the cotangents of the
// accelerations and of the inputs.                                                        (HVP-7)
void add_parameter_slopes(const ModelView& m, const StepDifferential& s,
                          const CurvedParameters& params, const ParameterCurvature& curved,
                          const Accelerations& y, const InputCotangent& out, Arena& arena) {
  const int nx = state_size(m);
  for (int k = 0; k < params.count; k++) {
    const double along = params.along[k];
    if (along == 0) continue;
    add_slopes(out.state, along, curved.state + static_cast<std::ptrdiff_t>(k) * nx, nx);
    add_slopes(out.ctrl, along, curved.ctrl + static_cast<std::ptrdiff_t>(k) * m.nu, m.nu);
  }
  add_rows(m, s, params, curved.by_early, curved.by_late, y, arena);
}

// Writes the results for the parameters: `change` are the changes of the multipliers, and `moved`
// those of the accelerations.                                                             (HVP-7)
void write_parameters(const ModelView& m, const StepCurvature& curved, const StepDirection& along,
                      const CurvedParameters& params, const ParameterCurvature& slopes,
                      const Accelerations& moved, const Accelerations& change, Arena& arena) {
  const StepDifferential& s = curved.s;
  const int nx = state_size(m), nv = m.nv;
  const FlatRows by = flatten(m, s, change, arena), at = flatten(m, s, moved, arena);
  double* late_mu = arena.zeros<double>(nv);
  for (int i = 0; i < nv; i++) {
    if (s.solves_step(s.forward.residual.component[i])) late_mu[i] = curved.mu.s[i];
  }
  for (int k = 0; k < params.count; k++) {
    const std::ptrdiff_t index = k, row = index * nv;
    const double *early = slopes.early + row, *late = slopes.late + row;
    params.second[k] = dot_slopes(by.early, early, nv) + dot_slopes(by.late, late, nv) +
                       dot_slopes(at.early, slopes.by_early + row, nv) +
                       dot_slopes(at.late, slopes.by_late + row, nv) +
                       dot_slopes(along.state, slopes.state + index * nx, nx) +
                       dot_slopes(along.ctrl, slopes.ctrl + index * m.nu, m.nu);
    if (!params.first) continue;
    params.first[k] = dot_slopes(curved.mu.g, early, nv) + dot_slopes(late_mu, late, nv);
  }
  for (const ParameterPair* pair = slopes.pairs; pair; pair = pair->next) {
    params.second[pair->j] += pair->second * params.along[pair->k];
    if (pair->j != pair->k) params.second[pair->k] += pair->second * params.along[pair->j];
  }
}

// Throws Unsupported if the second derivatives of a step with respect to parameters are not
// supported.
void require_parameters(const ModelView& m, const StepCurvature& curved) {
  if (m.opt.enableflags & enable::kDiagExact && curved.s.forward.blocks.count) {
    throw Unsupported("flag diagexact", kOptionOfParameters);
  }
  if (curved.sweeps) throw Unsupported("option noslip_iterations", kOptionOfParameters);
}

// Writes the products of a step that has been differentiated twice.                       (HVP-1)
void pull_curvature(const ModelView& m, const DataView& d, const StepCurvature& curved,
                    const StepCotangent& given, const double* change, const StepDirection& along,
                    const InputCotangent& first, const InputCotangent& second,
                    const CurvedParameters* params, Arena& arena) {
  const auto& [s, mu, forms, sliding, cross, sweeps] = curved;
  // the first derivative with the same factors
  const DofRows& residual = s.forward.residual;
  if (first.state || first.ctrl || first.force) pull_once(m, d, curved, given.next, first, arena);

  // the changes of the accelerations along the direction
  const ParameterCurvature slopes =
      params ? params->differentiate(m, d, curved, arena) : ParameterCurvature{};
  const Accelerations moved = push(m, d, s, along, params, slopes, arena);

  // the cotangents of the accelerations: those of a change of the cotangent, then direct terms
  const Accelerations y = make_accelerations(m, s, arena);
  clear(m, second);
  if (change) {
    double* through_w = arena.take<double>(m.nv);
    double* state = second.state ? second.state : arena.take<double>(state_size(m));
    integrate_cotangent(m, d, s.step.w, change, through_w, state);
    for (int i = 0; i < m.nv; i++) y.late.row[i][0] = through_w[i];
    pull_activations(m, d, s, change, second, arena);
  }
  if (params) add_parameter_slopes(m, s, *params, slopes, y, second, arena);
  add_turn_product(m, d, s, given.next, moved.late, y.late);

  // by component: the forms, the transposed solves, and the first derivative transposed
  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    const double* x = gather(m, part, along, arena);
    double* columns = arena.zeros<double>(part.stride);
    add_form_product(forms.late, c, x, columns);
    add_mixed_product(forms.late, c, x, moved.late, y.late, columns);
    if (solves_both(s, c)) add_mixed_product(forms.early, c, x, moved.early, y.early, columns);
    add_sliding_product(sliding, c, x, moved.early, columns, y.early);
    s.solve_transposed(m, d, c, y.late, y.early, arena);
    add_transposed(s, c, y, columns);
    scatter(m, part, columns, second);
  }

  // terms without accelerations
  add_activation_product(m, d, s.forward.paths.actuation, given.next, along, second, arena);
  for (const CrossTerm* term = cross; term && along.state && second.state; term = term->next) {
    second.state[term->j] += term->second * along.state[term->k];
    second.state[term->k] += term->second * along.state[term->j];
  }
  if (params) write_parameters(m, curved, along, *params, slopes, moved, y, arena);
}

}  // namespace

void pull_back_twice(const ModelView& given_m, const DataView& given_d, const StepCotangent& given,
                     const double* change, const StepDirection& along, const InputCotangent& first,
                     const InputCotangent& second, const CurvedParameters* params, Arena& arena) {
  require_awake(given_m, given_d);
  require_second_order(given_m, given.sensors);
  const auto& [m, d] =
      converge_collider(given_m, given_d, params || reads_solution(given_m, given, arena));
  const bool forces = along.force || first.force || second.force;
  if (m.opt.integrator == integrator::kRK4) {
    return pull_back_runge_kutta(m, d, given, change, along, first, second, params, arena);
  }

  // the second derivatives, and the product with them as matrices if the noslip solver acts
  const StepCurvature curved = differentiate_twice(m, d, given, forces, arena);
  if (params) require_parameters(m, curved);
  if (curved.sweeps) {
    const FormedStep step = form_step(m, d, curved, given, forces, arena);
    return pull_back_formed(m, step, given, change, along, first, second);
  }

  pull_curvature(m, d, curved, given, change, along, first, second, params, arena);
}

void pull_back_twice(const ModelView& m, const KeptStep& step, const StepCotangent& given,
                     const double* change, const StepDirection& along, const InputCotangent& first,
                     const InputCotangent& second, const CurvedParameters* params, Arena& arena) {
  require_second_order(m, given.sensors);
  const DataView& d = step.data();
  const StepCurvature curved =
      curve_step(m, d, step.differential(), given, arena.zeros<double>(m.nv), arena);
  if (params) require_parameters(m, curved);
  pull_curvature(m, d, curved, given, change, along, first, second, params, arena);
}

void pull_back_stage(const ModelView& m, const DataView& d, const StepCurvature& curved,
                     const CurvedParameters& params, const ParameterCurvature& slopes,
                     const InputCotangent& second, Arena& arena) {
  require_parameters(m, curved);
  const StepDifferential& s = curved.s;
  const DofRows& solved = s.forward.residual;
  const StepDirection still{};
  const Accelerations moved = push(m, d, s, still, &params, slopes, arena);
  const Accelerations y = make_accelerations(m, s, arena);
  clear(m, second);
  add_parameter_slopes(m, s, params, slopes, y, second, arena);
  for (int c = 0; c < solved.count; c++) {
    const Component& part = solved.components[c];
    const double* x = gather(m, part, still, arena);
    double* columns = arena.zeros<double>(part.stride);
    add_mixed_product(curved.forms.late, c, x, moved.late, y.late, columns);
    add_sliding_product(curved.sliding, c, x, moved.early, columns, y.early);
    add_transposed(s, c, y, columns);
    s.solve_transposed(m, d, c, y.late, y.early, arena);
    scatter(m, part, columns, second);
  }
  write_parameters(m, curved, still, params, slopes, moved, y, arena);
}

}  // namespace mujacobian

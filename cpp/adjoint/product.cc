#include "adjoint/product.h"

#include <cstring>

#include "adjoint/given_contact.h"
#include "contact/collider.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/sleep.h"
#include "layout/unsupported.h"
#include "second_order/sensor.h"
#include "sensor/sensor.h"
#include "step/activation.h"
#include "step/differential.h"
#include "step/position_update.h"
#include "step/runge_kutta.h"
#include "step/sleep.h"

namespace mujacobian {
namespace {

// Returns whether a product with the Jacobian of a step goes through factors of the step.
bool has_factors(const ModelView& m) {
  return m.opt.integrator != integrator::kRK4 && m.opt.noslip_iterations == 0;
}

double dot(const double* x, const double* y, int n) {
  double sum = 0;
  for (int k = 0; k < n; k++) sum += x[k] * y[k];
  return sum;
}

// y += s x
void add_scaled(double* y, double s, const double* x, int n) {
  for (int k = 0; k < n; k++) y[k] += s * x[k];
}

// Returns the tangents in the columns of a component: one row per column, with `count` numbers.
const double* gather(const ModelView& m, const Component& part, const Tangent* along, int count,
                     Arena& arena) {
  double* x = arena.zeros<double>(static_cast<std::size_t>(part.end_column()) * count);
  for (int k = 0; k < count; k++) {
    const double* inputs[3] = {along[k].state, along[k].ctrl, along[k].force};
    visit_columns(m, part, [&](int column, int input, int index) {
      if (inputs[input]) x[column * count + k] = inputs[input][index];
    });
  }
  return x;
}

// y += r^T X for a row r of n numbers and X (n, count)
void add_row_product(const double* r, const double* X, int n, int count, double* y) {
  for (int j = 0; j < n; j++) {
    if (r[j] != 0) add_scaled(y, r[j], X + j * count, count);
  }
}

// Writes the changes of the next activations.
void push_activations(const ModelView& m, const DataView& d, const StepDifferential& s,
                      const double* state, const double* ctrl, double* out, Arena& arena) {
  for (int i = 0; i < m.na; i++) {
    double& next = out[i];
    next = 0;
    visit_activation(
        m, d, s.forward.paths.actuation, i, arena,
        [&](int column, double value) { next += value * state[column]; },
        [&](int column, double value) {
          if (ctrl) next += value * ctrl[column];
        });
  }
}

// Adds y^T (rows of the component) to the cotangents of the inputs.
void add_rows(const ModelView& m, const DofRows& rows, int c, const DofRows& y, const Pullback& out,
              Arena& arena) {
  const Component& part = rows.components[c];
  double* outputs[3] = {out.state, out.ctrl, out.force};
  double* x = arena.zeros<double>(part.stride);
  for (int i = 0; i < part.nv; i++) {
    add_scaled(x, y.row[part.dofs[i]][0], rows.row[part.dofs[i]], part.end_column());
  }
  visit_columns(m, part, [&](int column, int input, int index) {
    if (outputs[input]) outputs[input][index] += x[column];
  });
}

void add_parameters(const Component& part, const double* columns, int nv, int count,
                    const DofRows& y, double* out) {
  for (int p = 0; columns && p < count; p++) {
    for (int i = 0; i < part.nv; i++) {
      out[p] += columns[p * nv + part.dofs[i]] * y.row[part.dofs[i]][0];
    }
  }
}

bool any(const SensorOutputs& out) { return out.C || out.D || out.Df; }

// Returns the differential with other right-hand sides.
StepDifferential with_sides(const StepDifferential& s, const DofRows& residual,
                            const DofRows& step_rows) {
  StepDifferential r = s;
  r.forward.residual = residual;
  r.step_rows = step_rows;
  return r;
}

// Adds the vector-Jacobian product of a step with factors to `out`. Also writes `sensors`, whose
// derivatives do not need the acceleration.
void pull_through_factors(const ModelView& m, const DataView& d, const StepDifferential& s,
                          const double* given, const ParameterList& params, const Pullback& out,
                          const SensorOutputs& sensors, Arena& arena) {
  const ParameterColumns columns = parameter_columns(m, d, s, params, arena);
  const DofRows& residual = s.forward.residual;

  // pull back through the integration of position and velocity
  double* through_w = arena.take<double>(m.nv);
  double* state = arena.zeros<double>(state_size(m));
  integrate_cotangent(m, d, s.step.w, given, through_w, state);
  const Pullback to{state, out.ctrl, out.force, out.params};

  // pull back through w, by component, with z = (M + h Dhat)^-T through_w and y = K^-T M z:
  //   dw = (M + h Dhat)^-1 (step_rows + M d(acc)), d(acc) = K^-1 residual                  (ADJ-3)
  const DofRows z = make_vector(m, residual, arena), y = make_vector(m, residual, arena);
  for (int i = 0; i < m.nv; i++) z.row[i][0] = through_w[i];
  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    const bool accelerated = s.solves_acceleration(c);
    s.solve_transposed(m, d, c, z, y, arena);
    // the step rows; they are the only right-hand side if d(acc) is not solved for
    if (s.solves_step(c)) {
      add_rows(m, s.step_rows, c, z, to, arena);
      add_parameters(part, columns.late, m.nv, columns.count, z, to.params);
      if (!accelerated) add_parameters(part, columns.early, m.nv, columns.count, z, to.params);
    }
    // the residual, through d(acc)
    if (!accelerated) continue;
    add_rows(m, residual, c, y, to, arena);
    add_parameters(part, columns.early, m.nv, columns.count, y, to.params);
  }

  // pull back to the contacts, which act through the constraint forces
  if (out.contacts) {
    double* multiplier = arena.take<double>(m.nv);
    for (int c = 0; c < residual.count; c++) {
      const Component& part = residual.components[c];
      const DofRows& of = s.solves_acceleration(c) ? y : z;
      for (int i = 0; i < part.nv; i++) multiplier[part.dofs[i]] = of.row[part.dofs[i]][0];
    }
    pull_contacts(m, d, s, multiplier, out.contacts, arena);
  }

  // pull back through the activations
  for (int i = 0; i < m.na; i++) {
    const double weight = given[2 * m.nv + i];
    for (int p = 0; p < columns.count; p++) to.params[p] += weight * columns.act[p * m.na + i];
    visit_activation(
        m, d, s.forward.paths.actuation, i, arena,
        [&](int column, double value) { state[column] += weight * value; },
        [&](int column, double value) {
          if (out.ctrl) out.ctrl[column] += weight * value;
        });
  }

  if (out.state) std::memcpy(out.state, state, state_size(m) * sizeof(double));
  if (any(sensors)) sense(m, d, s.forward, sensors, arena);
}

// Writes the changes of the next state for `count` changes of the inputs, with one solve for all.
void push(const ModelView& m, const DataView& d, const StepDifferential& s,
          const ParameterColumns& driven, const Tangent* along, const Change* out, int count,
          Arena& arena) {
  const DofRows& residual = s.forward.residual;
  const DofRows acc_side = make_columns(m, residual, count, arena);
  const DofRows step_side = s.two_systems ? make_columns(m, residual, count, arena) : acc_side;
  const StepDifferential sides = with_sides(s, acc_side, step_side);
  double* dw = arena.take<double>(static_cast<std::size_t>(count) * m.nv);
  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    const double* x = gather(m, part, along, count, arena);
    const bool accelerated = s.solves_acceleration(c), stepped = s.solves_step(c);
    for (int i = 0; i < part.nv; i++) {
      const int dof = part.dofs[i], n = part.end_column();
      if (accelerated) add_row_product(residual.row[dof], x, n, count, acc_side.row[dof]);
      if (stepped) add_row_product(s.step_rows.row[dof], x, n, count, step_side.row[dof]);
      double* first = (accelerated ? acc_side : step_side).row[dof];
      for (int k = 0; driven.count && k < count; k++) {
        first[k] += driven.early[k * m.nv + dof];
        if (stepped) step_side.row[dof][k] += driven.late[k * m.nv + dof];
      }
    }
    sides.solve(m, d, c, 0, count, arena);
    for (int i = 0; i < part.nv; i++) {
      const double* solution = step_side.row[part.dofs[i]];
      for (int k = 0; k < count; k++) dw[k * m.nv + part.dofs[i]] = solution[k];
    }
  }
  const double* zero = arena.zeros<double>(state_size(m));
  for (int k = 0; k < count; k++) {
    if (!out[k].state) continue;
    const double* state = along[k].state ? along[k].state : zero;
    integrate_tangent(m, d, s.step.w, dw + k * m.nv, state, out[k].state);
    double* act = out[k].state + 2 * m.nv;
    push_activations(m, d, s, state, along[k].ctrl, act, arena);
    if (driven.count) add_scaled(act, 1, driven.act + k * m.na, m.na);
  }
}

// The same with the columns of the parameters. Also writes `sensors`, whose derivatives do not need
// the acceleration.
void push_through_factors(const ModelView& m, const DataView& d, const StepDifferential& s,
                          const Tangent* along, const ParameterList& params, const Change* out,
                          int count, const SensorOutputs& sensors, Arena& arena) {
  const double** directions = arena.take<const double*>(count);
  for (int k = 0; k < count; k++) directions[k] = along[k].params;
  const ParameterColumns columns = directed_columns(m, d, s, params, directions, count, arena);
  push(m, d, s, columns, along, out, count, arena);
  if (any(sensors)) sense(m, d, s.forward, sensors, arena);
}

// y += X x for row-major X (rows, columns); null: zero
void add_product(const double* X, const double* x, int rows, int columns, double* y) {
  for (int r = 0; X && r < rows; r++) {
    y[r] += dot(X + static_cast<std::ptrdiff_t>(r) * columns, x, columns);
  }
}

// y += X^T x
void add_transposed_product(const double* X, const double* x, int rows, int columns, double* y) {
  for (int r = 0; X && r < rows; r++) {
    if (x[r] != 0) add_scaled(y, x[r], X + static_cast<std::ptrdiff_t>(r) * columns, columns);
  }
}

// Adds the product of the sensors' rows with their cotangent. Rows with a zero need not be written.
void add_sensed(const ModelView& m, const Outputs& b, const double* sensors, const Pullback& out) {
  const int nx = state_size(m), ns = m.nsensordata;
  add_transposed_product(b.C, sensors, ns, nx, out.state);
  add_transposed_product(b.D, sensors, ns, m.nu, out.ctrl);
  add_transposed_product(b.Df, sensors, ns, m.nv, out.force);
}

// The inputs of a product.
struct Wanted {
  bool state, ctrl, force;
};

// The blocks that a product needs, of the next state and of the sensors.
struct ProductBlocks {
  Outputs out;
  double* next_params;          // (nx, parameters)
  const double* sensed_params;  // (ns, parameters)
};

Outputs take_blocks(const ModelView& m, Wanted inputs, bool next, bool sensors, Arena& arena) {
  const std::size_t nx = state_size(m), ns = m.nsensordata;
  auto block = [&](bool wanted, std::size_t rows, std::size_t columns) {
    return wanted ? arena.take<double>(rows * columns) : nullptr;
  };
  return {block(next && inputs.state, nx, nx),    block(next && inputs.ctrl, nx, m.nu),
          block(sensors && inputs.state, ns, nx), block(sensors && inputs.ctrl, ns, m.nu),
          block(next && inputs.force, nx, m.nv),  block(sensors && inputs.force, ns, m.nv)};
}

// Fills the blocks of a step that a product uses directly.
void fill_blocks(const ModelView& m, const DataView& d, const ParameterList& params, bool next,
                 ProductBlocks& b, Arena& arena) {
  // without parameters of the next state, `transition` fills everything
  const Outputs& o = b.out;
  const bool any = o.A || o.B || o.Bf || o.C || o.D || o.Df;
  if (!next || params.count == 0) return any ? transition(m, d, o, arena) : void();

  // with parameters, the integrator is RK4, and each of its stages has columns of its own
  const ModelView& converging = converged_model(m);
  const std::size_t nx = state_size(m);
  b.next_params = arena.take<double>(nx * params.count);
  const StageColumns stages{params.count, b.next_params,
                            [&](const DataView& at, const ForwardDynamics& f) {
                              const StepDifferential s = at_acceleration(converging, f, arena);
                              return parameter_columns(converging, at, s, params, arena).early;
                            }};
  runge_kutta(converging, d, b.out, &stages, arena);
}

// Returns whether sensors are differentiated together with the next state, without another solve.
bool shares_factors(const ModelView& m, bool next) {
  return next && has_factors(m) && !senses_acceleration(m) && !senses_force(m);
}

SensorOutputs of_sensors(const Outputs& b) { return {b.C, b.D, b.Df}; }

void clear(double* x, int n) {
  if (x) std::memset(x, 0, n * sizeof(double));
}

// Throws Unsupported if there are parameters and a tree sleeps: it is not known which parameters
// would wake it.
void require_no_sleep(const ModelView& m, const DataView& d, bool params) {
  if (params && any_asleep(m, d)) {
    throw Unsupported("flag sleep", "parameters are not supported while trees sleep");
  }
}

// Throws Unsupported if the derivative with respect to given contacts is not known.
void require_given_contacts(const ModelView& m, bool factors) {
  if (!factors) throw Unsupported("integrator RK4", "given contacts are used at several poses");
  require_contact(m, {Parameter::kFriction, 0, 0});
  for (int a = 0; a < m.nactuator; a++) {
    if (m.actuator_trntype[a] != transmission::kBody) continue;
    throw Unsupported(element_name(m, object::kActuator, a), "it acts on given contacts");
  }
}

// The vector-Jacobian product, except for the rows of trees that do not move.
void pull(const ModelView& given_m, const DataView& given_d, const Cotangent& given,
          const ParameterList& params, const Pullback& out, const Sleep& sleep, Arena& arena) {
  const bool solved =
      !sleep.is_empty() || params.count > 0 || (given.sensors && senses_solution(given_m));
  const auto& [m, evaluated] = converge_collider(given_m, given_d, solved);
  const DataView& d = sleep.at_rest(m, evaluated, arena);
  const int nx = state_size(m), ns = m.nsensordata;
  require_parameters(m, params);
  const bool factors = has_factors(m);
  if (out.contacts) require_given_contacts(m, factors);
  clear(out.state, nx), clear(out.ctrl, m.nu), clear(out.force, m.nv);
  const bool next = given.state && !factors, shared = shares_factors(m, given.state);
  ProductBlocks b{};
  if (given.sensors && sensors_depend(m, params, given.sensors)) {
    b.sensed_params = sensed_parameters(m, d, params, arena);
  }
  b.out = take_blocks(m, {out.state != nullptr, out.ctrl != nullptr, out.force != nullptr}, next,
                      given.sensors != nullptr, arena);
  // pull back through the factored matrices, if the integrator has them
  if (factors && given.state) {
    const StepDifferential s = differentiate_step(m, d, out.force != nullptr, false, arena);
    pull_through_factors(m, d, s, given.state, params, out,
                         shared ? of_sensors(b.out) : SensorOutputs{}, arena);
  }
  // multiply by the matrices of all that remains
  if (next || (given.sensors && !shared)) fill_blocks(m, d, params, next, b, arena);
  if (!next && !given.sensors) return;
  add_transposed_product(b.out.A, given.state, nx, nx, out.state);
  add_transposed_product(b.out.B, given.state, nx, m.nu, out.ctrl);
  add_transposed_product(b.out.Bf, given.state, nx, m.nv, out.force);
  add_transposed_product(b.next_params, given.state, nx, params.count, out.params);
  if (!given.sensors) return;
  add_sensed(m, b.out, given.sensors, out);
  add_transposed_product(b.sensed_params, given.sensors, ns, params.count, out.params);
}

// Jacobian-vector products, except for the rows of trees that do not move.
void push_all(const ModelView& given_m, const DataView& given_d, const Tangent* along,
              const ParameterList& params, bool direct, const Change* out, int count,
              const Sleep& sleep, Arena& arena) {
  // the inputs that change, and the results that are requested
  const int nx = state_size(given_m), ns = given_m.nsensordata;
  const bool factors = has_factors(given_m);
  Wanted inputs{};
  bool next = false, sensed = false, driven = false;
  for (int k = 0; k < count; k++) {
    clear(out[k].state, nx), clear(out[k].sensors, ns);
    inputs.state |= along[k].state != nullptr;
    inputs.ctrl |= along[k].ctrl != nullptr;
    inputs.force |= along[k].force != nullptr;
    driven |= along[k].params != nullptr;
    next |= out[k].state != nullptr;
    sensed |= out[k].sensors != nullptr;
  }
  const bool solved = !sleep.is_empty() || driven || (sensed && senses_solution(given_m));
  const auto& [m, evaluated] = converge_collider(given_m, given_d, solved);
  const DataView& d = sleep.at_rest(m, evaluated, arena);

  // push forward through the factored matrices, if the integrator has them
  const bool shared = shares_factors(m, next);
  ProductBlocks b{};
  if (sensed && driven && direct) {
    b.sensed_params = sensed_parameters(m, d, params, arena);
  }
  b.out = take_blocks(m, inputs, next && !factors, sensed, arena);
  if (factors && next) {
    const StepDifferential s = differentiate_step(m, d, inputs.force, false, arena);
    push_through_factors(m, d, s, along, params, out, count,
                         shared ? of_sensors(b.out) : SensorOutputs{}, arena);
  }
  if (factors) next = false;

  // multiply by the matrices of all that remains
  if (next || (sensed && !shared)) fill_blocks(m, d, params, next, b, arena);
  if (!next && !sensed) return;
  for (int k = 0; k < count; k++) {
    const Tangent& x = along[k];
    if (next && out[k].state) {
      if (x.state) add_product(b.out.A, x.state, nx, nx, out[k].state);
      if (x.ctrl) add_product(b.out.B, x.ctrl, nx, m.nu, out[k].state);
      if (x.force) add_product(b.out.Bf, x.force, nx, m.nv, out[k].state);
      if (x.params) add_product(b.next_params, x.params, nx, params.count, out[k].state);
    }
    if (!out[k].sensors) continue;
    if (x.state) add_product(b.out.C, x.state, ns, nx, out[k].sensors);
    if (x.ctrl) add_product(b.out.D, x.ctrl, ns, m.nu, out[k].sensors);
    if (x.force) add_product(b.out.Df, x.force, ns, m.nv, out[k].sensors);
    if (x.params) add_product(b.sensed_params, x.params, ns, params.count, out[k].sensors);
  }
}

}  // namespace

void vjp(const ModelView& m, const DataView& d, const Cotangent& given, const ParameterList& params,
         const Pullback& out, Arena& arena) {
  const Sleep sleep(m, d, given.sensors != nullptr, nullptr, arena);
  if (sleep.is_empty()) return pull(m, d, given, params, out, sleep, arena);
  require_no_sleep(m, d, params.count > 0);
  const double* awake = sleep.without_still(given.state, m.nv, state_size(m), arena);
  pull(m, d, {awake, given.sensors}, params, out, sleep, arena);
  sleep.hold_cotangent(m, given.state, out.state, out.force);
}

bool may_keep(const ModelView& m) { return has_factors(m); }

bool may_keep_sensors(const ModelView& m, const double* sensors, Arena& arena) {
  const unsigned char* wanted = weighted_sensors(m, sensors, arena);
  return !wanted ||
         !(senses_acceleration(m, wanted) || senses_force(m, wanted) || calls_engine(m, wanted));
}

void vjp(const ModelView& m, const KeptStep& step, const Cotangent& given, const Pullback& out,
         Arena& arena) {
  clear(out.state, state_size(m)), clear(out.ctrl, m.nu), clear(out.force, m.nv);
  const Wanted inputs{out.state != nullptr, out.ctrl != nullptr, out.force != nullptr};
  const Outputs b = take_blocks(m, inputs, false, given.sensors != nullptr, arena);
  SensorOutputs sensors = of_sensors(b);
  sensors.wanted = weighted_sensors(m, given.sensors, arena);
  pull_through_factors(m, step.data(), step.differential(), given.state, {nullptr, 0}, out, sensors,
                       arena);
  if (given.sensors) add_sensed(m, b, given.sensors, out);
}

void jvp(const ModelView& m, const KeptStep& step, const Tangent& along,
         const ParameterList& params, double* next_state, Arena& arena) {
  clear(next_state, state_size(m));
  const Change out{next_state, nullptr};
  push_through_factors(m, step.data(), step.differential(), &along, params, &out, 1, {}, arena);
}

void jvp(const ModelView& m, const DataView& d, const Tangent* along, const ParameterList& params,
         bool direct, const Change* out, int count, Arena& arena) {
  bool sensed = false, driven = false;
  for (int k = 0; k < count; k++) {
    sensed |= out[k].sensors != nullptr;
    driven |= along[k].params != nullptr;
  }
  const Sleep sleep(m, d, sensed, nullptr, arena);
  if (sleep.is_empty()) return push_all(m, d, along, params, direct, out, count, sleep, arena);
  require_no_sleep(m, d, driven);
  Tangent* awake = arena.take<Tangent>(count);
  for (int k = 0; k < count; k++) {
    awake[k] = along[k];
    awake[k].state = sleep.without_asleep(along[k].state, 2, m.nv, state_size(m), arena);
    awake[k].force = sleep.without_asleep(along[k].force, 1, m.nv, m.nv, arena);
  }
  push_all(m, d, awake, params, direct, out, count, sleep, arena);
  for (int k = 0; k < count; k++) sleep.hold_tangent(m, along[k].state, out[k].state);
}

}  // namespace mujacobian

#include "second_order/runge_kutta.h"

#include <cstring>

#include "actuation/activation.h"
#include "actuation/curvature.h"
#include "layout/enums.h"
#include "second_order/activation.h"
#include "second_order/formed_step.h"
#include "second_order/forms.h"
#include "second_order/path_function.h"
#include "second_order/turn.h"
#include "step/runge_kutta.h"

namespace mujacobian {
namespace {

using Stage = RungeKuttaRecord::Stage;

// Cotangents of the state of a stage, and of the rates that it leads to.
struct StageCotangent {
  double *position, *velocity, *act;  // of its state
  double* turn;                       // of its rotation vectors since the initial position
  double *rate, *acc, *act_rate;      // of the rates of positions, velocities and activations
};

// Returns the model with an integrator that adds nothing to the acceleration.
ModelView without_integrator(const ModelView& m) {
  ModelView plain = m;
  plain.opt.integrator = integrator::kEuler;
  plain.opt.disableflags |= disable::kEulerDamp;
  return plain;
}

// Sums, over all functions that a step is composed of, the second derivative contracted with the
// cotangent of the function, multiplied by the derivative of its arguments from both sides.
// (HES-55)
class RungeKuttaHessian {
 public:
  RungeKuttaHessian(const ModelView& m, const DataView& d, const StepCotangent& given, bool forces,
                    const CurvedParameters* params, Arena& arena)
      : m_(m),
        plain_(without_integrator(m)),
        d_(d),
        given_(given),
        arena_(arena),
        forces_(forces),
        params_(params) {
    record(params ? params->count : 0);
    hessian_ = arena.zeros<double>(static_cast<std::size_t>(width_) * width_);
    for (StageCotangent& c : cotangent_) c = make_cotangent();
  }

  // Returns the symmetric matrix over the inputs of the step, and writes the first derivatives with
  // respect to the parameters.
  const double* run() {
    // the end of the step                                                              (INT-13)
    const double h = m_.opt.timestep;
    const double* next = given_.next;
    double* turn = arena_.zeros<double>(m_.nv);
    double* mean = arena_.zeros<double>(m_.na);
    curve_move(record_.turn, next, turn);
    curve_finish(next + 2 * m_.nv, mean);
    for (int i = 0; i < kStages; i++) {
      const StageCotangent& c = cotangent_[i];
      for (int k = 0; k < m_.nv; k++) {
        c.rate[k] += h * kStageWeight[i] * turn[k];
        c.acc[k] += h * kStageWeight[i] * next[m_.nv + k];
      }
      for (int k = 0; k < m_.na; k++) c.act_rate[k] += kStageWeight[i] * mean[k];
    }
    // the stages, in reverse
    for (int i = kStages - 1; i >= 0; i--) {
      const Stage& stage = record_.stage[i];
      const StageCotangent& c = cotangent_[i];
      curve_stage(stage, c, i == 0);
      if (i == 0) break;
      pull_stage(stage, c);
      curve_rate(stage, c);
      curve_move(stage.turn, c.position, c.turn);
      const StageCotangent& before = cotangent_[i - 1];
      const double part = kNextStage[i - 1] * h;
      for (int k = 0; k < m_.nv; k++) {
        before.rate[k] += part * c.turn[k];
        before.acc[k] += part * c.velocity[k];
      }
      for (int k = 0; k < m_.na; k++) before.act_rate[k] += part * c.act[k];
    }
    return hessian_;
  }

  int width() const { return width_; }
  // The number of inputs without parameters.
  int inputs() const { return inputs_; }
  // The derivative of the next state with respect to the parameters, (nx, count).
  const double* next_parameters() const { return next_parameters_; }

 private:
  // Records the step with a column for each of `count` parameters.
  void record(int count) {
    next_parameters_ = arena_.zeros<double>(static_cast<std::size_t>(state_size(m_)) * count);
    const StageColumns columns{count, next_parameters_,
                               [&](const DataView& at, const ForwardDynamics& forward) {
                                 const StepDifferential s = at_acceleration(m_, forward, arena_);
                                 return params_->columns(plain_, at, s, arena_);
                               }};
    record_runge_kutta(m_, d_, forces_, count ? &columns : nullptr, record_, arena_);
    width_ = record_.width;
    inputs_ = width_ - count;
    if (params_ && params_->first) std::memset(params_->first, 0, count * sizeof(double));
  }
  StageCotangent make_cotangent() {
    auto dofs = [&] { return arena_.zeros<double>(m_.nv); };
    auto acts = [&] { return arena_.zeros<double>(m_.na); };
    return {dofs(), dofs(), acts(), dofs(), dofs(), dofs(), acts()};
  }
  const double* row(const Varying& x, int i) const {
    return x.change + static_cast<std::ptrdiff_t>(i) * width_;
  }
  // Returns the derivative of one of the inputs.
  const double* unit_row(int column) {
    double* x = arena_.zeros<double>(width_);
    x[column] = 1;
    return x;
  }

  // Adds value (a b^T + b a^T), or value a a^T if both are the same.
  void add_pair(const double* a, const double* b, double value) {
    if (value == 0) return;
    add_outer(a, b, value);
    if (a != b) add_outer(b, a, value);
  }
  void add_outer(const double* a, const double* b, double value) {
    for (int i = 0; i < width_; i++) {
      if (a[i] == 0) continue;
      double* to = hessian_ + static_cast<std::ptrdiff_t>(i) * width_;
      const double scale = value * a[i];
      for (int k = 0; k < width_; k++) to[k] += scale * b[k];
    }
  }
  // Adds sum_jk T_jk a_j b_k^T for a symmetric or a general 3x3 matrix of second derivatives with
  // respect to three rows `a` and three rows `b`; the latter are others, and added in both orders.
  void add_block(const Mat3& T, const double* const a[3]) {
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++) add_outer(a[j], a[k], T(j, k));
  }
  void add_block(const Mat3& T, const double* const a[3], const double* const b[3]) {
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++) add_pair(a[j], b[k], T(j, k));
  }

  // q = q0 [+] turn: adds the second derivative, and the cotangent of the turn.          (HES-4)
  void curve_move(const Varying& turn, const double* position, double* out) {
    for (int i = 0; i < m_.nv;) {
      if (!is_rotation(m_, i)) {
        out[i] += position[i];
        i++;
        continue;
      }
      const Vec3 u = load3(turn.value + i), lambda = load3(position + i);
      store3(out + i, load3(out + i) + transpose_mul(right_jacobian(u), lambda));
      const TurnCurvature c = turn_curvature(u, lambda);
      const double* initial[3] = {unit_row(i), unit_row(i + 1), unit_row(i + 2)};
      const double* turned[3] = {row(turn, i), row(turn, i + 1), row(turn, i + 2)};
      add_block(c.mixed, initial, turned);
      add_block(c.turn, turned);
      i += 3;
    }
  }

  // The rate of the rotation vector since the initial position: Jr^-1(turn) v.          (ROT-12)
  void curve_rate(const Stage& stage, const StageCotangent& c) {
    for (int i = 0; i < m_.nv;) {
      if (!rates_are_turned() || !is_rotation(m_, i)) {
        c.velocity[i] += c.rate[i];
        i++;
        continue;
      }
      const Vec3 u = load3(stage.turn.value + i), v = load3(stage.velocity.value + i);
      const Vec3 lambda = load3(c.rate + i);
      const Vec3 by_velocity = transpose_mul(right_jacobian_inverse(u), lambda);
      const Vec3 by_turn = transpose_mul(right_jacobian_inverse_change(u, v), lambda);
      store3(c.velocity + i, load3(c.velocity + i) + by_velocity);
      store3(c.turn + i, load3(c.turn + i) + by_turn);
      const RateCurvature bend = rate_curvature(u, v, lambda);
      const double *turned[3], *moved[3];
      for (int k = 0; k < 3; k++) {
        turned[k] = row(stage.turn, i + k), moved[k] = row(stage.velocity, i + k);
      }
      add_block(bend.turn, turned);
      add_block(bend.mixed, turned, moved);
      i += 3;
    }
  }

  // Returns the derivative of the state of a stage, the controls and the applied forces.
  const double** stage_rows(const Stage& stage) {
    const double** rows = arena_.take<const double*>(width_);
    for (int k = 0; k < m_.nv; k++) {
      rows[k] = row(stage.position, k), rows[m_.nv + k] = row(stage.velocity, k);
    }
    for (int k = 0; k < m_.na; k++) rows[2 * m_.nv + k] = row(stage.act, k);
    for (int k = state_size(m_); k < width_; k++) rows[k] = unit_row(k);
    return rows;
  }

  // The acceleration and the rates of activations of a stage, and the sensors of the first one.
  void curve_stage(const Stage& stage, const StageCotangent& c, bool first) {
    const int nx = state_size(m_), nu = m_.nu, nv = m_.nv;
    auto block = [&](int rows, int columns) {
      return arena_.zeros<double>(static_cast<std::size_t>(rows) * columns);
    };
    HessianOutputs out{block(nx, nx), block(nx, nu), block(nu, nu), nullptr, nullptr, nullptr};
    if (forces_) out.xf = block(nx, nv), out.uf = block(nu, nv), out.ff = block(nv, nv);
    const StepCotangent given{arena_.zeros<double>(nx), first ? given_.sensors : nullptr};
    const StepDifferential s = at_acceleration(m_, stage.forward, arena_);
    const StepCurvature curved = curve_step(plain_, stage.at, s, given, c.acc, arena_);
    const double** rows = stage_rows(stage);
    if (params_) curve_parameters(stage, curved, rows);
    write_curvature(plain_, stage.at, curved, out, arena_);
    visit_activation_hessians(
        plain_, stage.at, stage.forward.paths.actuation, ActivationValue::kRate, c.act_rate, arena_,
        [&](int j, int k, double second) { add_entry(m_, out, j, k, second); });

    // multiply by the derivatives of the state of the stage from both sides
    double* product = arena_.take<double>(width_);
    for (int j = 0; j < inputs_; j++) {
      std::memset(product, 0, width_ * sizeof(double));
      for (int k = 0; k < inputs_; k++) {
        const double second = entry(out, j, k);
        for (int col = 0; second != 0 && col < width_; col++) product[col] += second * rows[k][col];
      }
      add_outer(rows[j], product, 1);
    }
  }

  // Adds the second derivatives of the acceleration of a stage with respect to a parameter and to
  // `rows` or another parameter, and the first ones.                                    (HVP-13)
  void curve_parameters(const Stage& stage, const StepCurvature& curved, const double** rows) {
    const int nx = state_size(m_), count = params_->count;
    const ParameterCurvature slopes = params_->differentiate(plain_, stage.at, curved, arena_);
    double* variables = arena_.zeros<double>(inputs_);
    const InputCotangent mixed{variables, variables + nx,
                               forces_ ? variables + nx + m_.nu : nullptr};
    double *unit = arena_.zeros<double>(count), *first = arena_.take<double>(count);
    double* second = arena_.take<double>(count);
    CurvedParameters one = *params_;
    one.along = unit, one.first = first, one.second = second;
    for (int k = 0; k < count; k++) {
      const Arena::Mark mark = arena_.mark();
      unit[k] = 1;
      pull_back_stage(plain_, stage.at, curved, one, slopes, mixed, arena_);
      unit[k] = 0;
      for (int j = 0; j < inputs_; j++) add_pair(rows[j], rows[inputs_ + k], variables[j]);
      for (int j = 0; j < count; j++) add_outer(rows[inputs_ + j], rows[inputs_ + k], second[j]);
      arena_.rewind(mark);
    }
    for (int k = 0; k < count && params_->first; k++) params_->first[k] += first[k];
  }

  // Returns the second derivative with respect to inputs j and k of (state, controls, forces).
  double entry(const HessianOutputs& out, int j, int k) const {
    const int nx = state_size(m_), nu = m_.nu, nv = m_.nv;
    if (j > k) return entry(out, k, j);
    auto at = [](const double* x, int i, int n, int col) {
      return x[static_cast<std::ptrdiff_t>(i) * n + col];
    };
    if (k < nx) return at(out.xx, j, nx, k);
    if (k < nx + nu) return j < nx ? at(out.xu, j, nu, k - nx) : at(out.uu, j - nx, nu, k - nx);
    const int f = k - nx - nu;
    if (j < nx) return at(out.xf, j, nv, f);
    return j < nx + nu ? at(out.uf, j - nx, nv, f) : at(out.ff, j - nx - nu, nv, f);
  }

  // Adds the cotangents of the state of a stage, by its acceleration and rates of activations.
  void pull_stage(const Stage& stage, const StageCotangent& c) {
    const DofRows& solved = stage.forward.residual;
    for (int component = 0; component < solved.count; component++) {
      const Component& part = solved.components[component];
      for (int i = 0; i < part.nv; i++) {
        const double *from = solved.row[part.dofs[i]], weight = c.acc[part.dofs[i]];
        for (int k = 0; k < part.nv; k++) {
          c.position[part.dofs[k]] += weight * from[k];
          c.velocity[part.dofs[k]] += weight * from[part.nv + k];
        }
        for (int k = 0; k < part.na; k++) {
          c.act[part.acts[k]] += weight * from[part.act_column() + k];
        }
      }
    }
    const Actuation& actuation = stage.forward.paths.actuation;
    for (int i = 0; actuation.next && i < m_.na; i++) {
      const NextActivation& next = actuation.next[i];
      const double weight = c.act_rate[i];
      pull_motion(stage, next.path, weight * next.gear * next.rate.d[local::kLength],
                  weight * next.gear * next.rate.d[local::kRate], c);
      for (int k = 0; k < m_.actuator_actnum[next.actuator]; k++) {
        c.act[m_.actuator_actadr[next.actuator] + k] += weight * next.rate.d[local::kAct + k];
      }
    }
  }

  // Adds the cotangents of the state of a stage, by the length and the rate of a path.
  void pull_motion(const Stage& stage, const Path& p, double by_length, double by_rate,
                   const StageCotangent& c) {
    double* rate = arena_.take<double>(p.n);
    path_rate_derivative(p, stage.at.qvel, rate);
    for (int k = 0; k < p.n; k++) {
      c.position[p.dofs[k]] += by_length * p.dlength[k] + by_rate * rate[k];
      c.velocity[p.dofs[k]] += by_rate * p.moment[k];
    }
  }

  // The activations after the step, as functions of the initial ones, of the mean rates, and of the
  // rate of the actuator.                                                               (INT-15)
  void curve_finish(const double* weights, double* mean) {
    const Stage& stage = record_.stage[record_.last];
    const Actuation& actuation = stage.forward.paths.actuation;
    if (!actuation.next) return;
    constexpr int kMean = local::kCtrl;  // the mean rates take the place of the controls
    for (int a = 0; a < m_.nactuator; a++) {
      const int first = m_.actuator_actadr[a], count = m_.actuator_actnum[a];
      if (count == 0) continue;
      const int out = m_.actuator_outadr[a];
      Variables<CurvedNumber> x{};
      CurvedNumber rates[local::kMaxActs], next[local::kMaxActs], sum(0.0);
      x.length = stage.at.actuator_length[out];
      x.rate = local_variable<CurvedNumber>(stage.at.actuator_velocity[out], local::kRate);
      for (int k = 0; k < count; k++) {
        x.act[k] = local_variable<CurvedNumber>(d_.act[first + k], local::kAct + k);
        rates[k] = local_variable<CurvedNumber>(record_.mean.value[first + k], kMean + k);
      }
      next_activations(m_, a, x, rates, next);
      for (int k = 0; k < count; k++) sum = sum + weights[first + k] * next[k];

      // the derivatives of the variables
      const double* rows[local::kCount] = {};
      for (int k = 0; k < count; k++) {
        mean[first + k] += sum.d[kMean + k];
        rows[local::kAct + k] = unit_row(2 * m_.nv + first + k);
        rows[kMean + k] = row(record_.mean, first + k);
      }
      for (int k = 0; k < count; k++) {
        const Path& p = actuation.next[first + k].path;
        if (p.n == 0) continue;
        rows[local::kRate] = curve_speed(stage, a, p, sum.d[local::kRate]);
        break;
      }
      for (int i = 0; i < local::kCount; i++)
        for (int k = 0; k <= i; k++) {
          if (rows[i] && rows[k]) add_pair(rows[i], rows[k], sum.h[i * (i + 1) / 2 + k]);
        }
    }
  }

  // Returns the derivative of the rate of an actuator, and adds `weight` times the second one.
  const double* curve_speed(const Stage& stage, int actuator, const Path& p, double weight) {
    const double gear = path_gear(m_, actuator);
    double *speed = arena_.zeros<double>(width_), *rate = arena_.take<double>(p.n);
    path_rate_derivative(p, stage.at.qvel, rate);
    for (int j = 0; j < p.n; j++) {
      const double *moved = row(stage.position, p.dofs[j]), *v = row(stage.velocity, p.dofs[j]);
      for (int c = 0; c < width_; c++) speed[c] += gear * (rate[j] * moved[c] + p.moment[j] * v[c]);
    }
    pull_motion(stage, p, 0, gear * weight, cotangent_[record_.last]);
    if (!p.hessian) return speed;
    const PathBend bend =
        bend_path(m_, stage.at, actuator_source(m_, actuator), stage.at.qvel, arena_);
    for (int j = 0; j < p.n; j++)
      for (int k = 0; k < p.n; k++) {
        const double* moved = row(stage.position, p.dofs[k]);
        if (bend.moment) {
          add_outer(row(stage.position, p.dofs[j]), moved,
                    gear * weight * bend.moment[j * p.n + k]);
        }
        add_pair(row(stage.velocity, p.dofs[j]), moved, gear * weight * p.hessian[j * p.n + k]);
      }
    return speed;
  }

  const ModelView& m_;
  const ModelView plain_;
  const DataView& d_;
  const StepCotangent& given_;
  Arena& arena_;
  RungeKuttaRecord record_;
  bool forces_;
  const CurvedParameters* params_;  // null: none
  int width_, inputs_;
  double* next_parameters_;
  double* hessian_;  // (width, width)
  StageCotangent cotangent_[kStages];
};

// Writes the blocks of the matrix over (state, controls, applied forces).
void write_blocks(const ModelView& m, const double* from, int width, const HessianOutputs& out) {
  const int nx = state_size(m), nu = m.nu, nv = m.nv;
  auto write = [&](double* block, int first_row, int rows, int first_column, int columns) {
    for (int i = 0; block && i < rows; i++) {
      std::memcpy(block + static_cast<std::ptrdiff_t>(i) * columns,
                  from + static_cast<std::ptrdiff_t>(first_row + i) * width + first_column,
                  columns * sizeof(double));
    }
  };
  write(out.xx, 0, nx, 0, nx), write(out.xu, 0, nx, nx, nu), write(out.uu, nx, nu, nx, nu);
  write(out.xf, 0, nx, nx + nu, nv), write(out.uf, nx, nu, nx + nu, nv);
  write(out.ff, nx + nu, nv, nx + nu, nv);
}

// Makes the matrix exactly symmetric: sums in different orders differ by rounding.
const double* symmetrized(const double* from, int n, Arena& arena) {
  double* to = arena.take<double>(static_cast<std::size_t>(n) * n);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * n + k;
      to[at] = 0.5 * (from[at] + from[static_cast<std::ptrdiff_t>(k) * n + i]);
    }
  return to;
}

// Adds the products with the rows and columns of the parameters.
void add_parameters(const ModelView& m, const FormedStep& formed, const RungeKuttaHessian& step,
                    const double* change, const StepDirection& along,
                    const CurvedParameters& params, const InputCotangent& second) {
  const int sizes[3] = {state_size(m), m.nu, m.nv};
  const double* inputs[3] = {along.state, along.ctrl, along.force};
  double* outputs[3] = {second.state, second.ctrl, second.force};
  for (int k = 0; k < params.count; k++) {
    const double* row =
        formed.hessian + static_cast<std::ptrdiff_t>(step.inputs() + k) * formed.width;
    double sum = 0;
    for (int part = 0, column = 0; part < 3; column += sizes[part++]) {
      for (int i = 0; i < sizes[part]; i++) {
        if (inputs[part]) sum += row[column + i] * inputs[part][i];
        if (outputs[part]) outputs[part][i] += row[column + i] * params.along[k];
      }
    }
    for (int l = 0; l < params.count; l++) sum += row[step.inputs() + l] * params.along[l];
    for (int i = 0; change && i < sizes[0]; i++) {
      sum += change[i] * step.next_parameters()[static_cast<std::ptrdiff_t>(i) * params.count + k];
    }
    params.second[k] = sum;
  }
}

}  // namespace

void runge_kutta_hessian(const ModelView& m, const DataView& d, const StepCotangent& given,
                         bool forces, const HessianOutputs& out, Arena& arena) {
  RungeKuttaHessian step(m, d, given, forces, nullptr, arena);
  const double* found = step.run();
  write_blocks(m, symmetrized(found, step.width(), arena), step.width(), out);
}

void pull_back_runge_kutta(const ModelView& m, const DataView& d, const StepCotangent& given,
                           const double* change, const StepDirection& along,
                           const InputCotangent& first, const InputCotangent& second,
                           const CurvedParameters* params, Arena& arena) {
  const int nx = state_size(m);
  auto block = [&](int columns) {
    return arena.zeros<double>(static_cast<std::size_t>(nx) * columns);
  };
  const bool forces = along.force || first.force || second.force;
  Outputs jacobians{};
  jacobians.A = block(nx), jacobians.B = block(m.nu);
  if (forces) jacobians.Bf = block(m.nv);
  runge_kutta(m, d, jacobians, nullptr, arena);
  RungeKuttaHessian step(m, d, given, forces, params, arena);
  const double* found = symmetrized(step.run(), step.width(), arena);
  const FormedStep formed{{jacobians.A, jacobians.B, jacobians.Bf}, found, step.width()};
  pull_back_formed(m, formed, given, change, along, first, second);
  if (params) add_parameters(m, formed, step, change, along, *params, second);
}

}  // namespace mujacobian

#include "step/runge_kutta.h"

#include <cstring>
#include <optional>
#include <utility>

#include "actuation/activation.h"
#include "contact/collider.h"
#include "layout/enums.h"
#include "sensor/sensor.h"
#include "spatial/quaternion.h"
#include "spatial/rotation.h"
#include "step/support.h"

namespace mujacobian {
namespace {

// An mjData of our own with a copy of the caller's state.
class Scratch {
 public:
  Scratch(const ModelView& m, const DataView& d, Arena& arena) : data_(make_data(m.address)) {
    const int spec = engine().integration_spec;
    double* state = arena.take<double>(engine().mj_stateSize(m.address, spec));
    engine().mj_getState(m.address, d.address, state, spec);
    engine().mj_setState(m.address, data_.get(), state, spec);
  }

  // Runs mj_forward at another position, velocity and activation, and returns a view of the data.
  DataView at(const ModelView& m, const double* qpos, const double* qvel, const double* act) {
    DataView d = view_data(data_.get());
    std::memcpy(const_cast<double*>(d.qpos), qpos, m.nq * sizeof(double));
    std::memcpy(const_cast<double*>(d.qvel), qvel, m.nv * sizeof(double));
    std::memcpy(const_cast<double*>(d.act), act, m.na * sizeof(double));
    forward(m.address, data_.get());
    return view_data(data_.get());
  }

  OwnedData release() { return std::move(data_); }

 private:
  OwnedData data_;
};

// One step and its derivative.
class RungeKutta {
 public:
  RungeKutta(const ModelView& m, const DataView& d, const Outputs& out, const StageColumns* extra,
             bool forces, RungeKuttaRecord* record, Arena& arena)
      : m_(m), d_(d), out_(out), extra_(extra), arena_(arena), forces_(forces), record_(record) {
    inputs_ = state_size(m) + m.nu + (forces_ ? m.nv : 0);
    width_ = inputs_ + (extra ? extra->count : 0);
  }

  void run() {
    // `turn` is the change of the position from the initial one, in tangent coordinates, and `rate`
    // its rate
    std::optional<Scratch> scratch;
    double* qpos = arena_.take<double>(m_.nq);
    Varying rate = make(m_.nv), velocity = make(m_.nv), acc = make(m_.nv);
    Varying rate_sum = make(m_.nv), acc_sum = make(m_.nv), turn = make(m_.nv);
    Varying position = make(m_.nv);
    Varying act = make(m_.na), act_rate = make(m_.na), act_rate_sum = make(m_.na);

    // initial state
    start(position, 0, d_.qpos);
    start(velocity, m_.nv, d_.qvel);
    start(act, 2 * m_.nv, d_.act);
    copy(rate, velocity);

    DataView at = d_;
    Actuation actuation{}, first{};
    for (int i = 0; i < kStages; i++) {
      // acceleration and rates of activations of this stage, and their weighted sums
      const ForwardDynamics forward = accelerate(at, i == 0, position, velocity, act, acc);
      actuation = forward.paths.actuation;
      if (i == 0) first = actuation;
      if (record_) {
        record_->stage[i] = {scratch ? scratch->release() : nullptr,
                             at,
                             forward,
                             keep(position),
                             keep(velocity),
                             keep(act),
                             keep(turn)};
      }
      if (actuation.next) activate(at, actuation, position, velocity, act, act_rate);
      add(rate_sum, kStageWeight[i], rate);
      add(acc_sum, kStageWeight[i], acc);
      add(act_rate_sum, kStageWeight[i], act_rate);
      if (i == kStages - 1) break;

      // state of the next stage: a part of the step with the rates of this stage         (INT-13)
      const double h = kNextStage[i] * m_.opt.timestep;
      clear(turn);
      add(turn, h, rate);
      move(turn, qpos, position);
      restart(velocity, m_.nv, d_.qvel);
      add(velocity, h, acc);
      restart(act, 2 * m_.nv, d_.act);
      add(act, h, act_rate);
      rates(velocity, turn, rate);
      if (!scratch || record_) scratch.emplace(m_, d_, arena_);
      at = scratch->at(m_, qpos, velocity.value, act.value);
    }

    // next activations, at the lengths and speeds of the first stage; before 4.0 of the last stage
    const bool at_first = engine().version >= kMuJoCo400;
    if (at_first) {
      restart(position, 0, d_.qpos);
      restart(velocity, m_.nv, d_.qvel);
      finish(d_, first, position, velocity, act_rate_sum, act);
    } else {
      finish(at, actuation, position, velocity, act_rate_sum, act);
    }
    // next position and velocity, with the mean rates
    clear(turn);
    add(turn, m_.opt.timestep, rate_sum);
    if (record_) {
      record_->last = at_first ? 0 : kStages - 1;
      record_->turn = turn, record_->mean = act_rate_sum;
      record_->width = width_;
    }
    move(turn, qpos, position);
    restart(velocity, m_.nv, d_.qvel);
    add(velocity, m_.opt.timestep, acc_sum);
    write(position, 0);
    write(velocity, m_.nv);
    write(act, 2 * m_.nv);
  }

 private:
  Varying make(int rows) {
    return {rows, arena_.zeros<double>(rows),
            arena_.zeros<double>(static_cast<std::size_t>(rows) * width_)};
  }
  // Returns a copy.
  Varying keep(const Varying& x) {
    Varying kept = make(x.rows);
    copy(kept, x);
    return kept;
  }
  double* row(const Varying& x, int i) const {
    return x.change + static_cast<std::ptrdiff_t>(i) * width_;
  }
  std::size_t size(const Varying& x) const { return static_cast<std::size_t>(x.rows) * width_; }
  void clear(Varying& x) const {
    std::memset(x.value, 0, x.rows * sizeof(double));
    std::memset(x.change, 0, size(x) * sizeof(double));
  }
  void copy(Varying& to, const Varying& from) const {
    std::memcpy(to.value, from.value, to.rows * sizeof(double));
    std::memcpy(to.change, from.change, size(to) * sizeof(double));
  }
  void add(Varying& to, double scale, const Varying& from) const {
    for (int i = 0; i < to.rows; i++) to.value[i] += scale * from.value[i];
    for (std::size_t k = 0; k < size(to); k++) to.change[k] += scale * from.change[k];
  }
  void add_row(double* to, double scale, const double* from) const {
    for (int c = 0; c < width_; c++) to[c] += scale * from[c];
  }

  // Sets x to a part of the initial state, whose columns start at `column`. Quaternions are not
  // copied.
  void start(Varying& x, int column, const double* value) const {
    for (int i = 0; i < x.rows; i++) {
      if (column) x.value[i] = value[i];
      row(x, i)[column + i] = 1;
    }
  }
  void restart(Varying& x, int column, const double* value) const {
    clear(x);
    start(x, column, value);
  }

  // Rows dof .. dof+2 of `to` += g rows dof .. dof+2 of `from`
  void add_product(Varying& to, const Mat3& g, const Varying& from, int dof) const {
    for (int r = 0; r < 3; r++)
      for (int s = 0; s < 3; s++) add_row(row(to, dof + r), g(r, s), row(from, dof + s));
  }

  // Computes the acceleration of a stage as a function of the inputs of the step.
  ForwardDynamics accelerate(const DataView& at, bool first, const Varying& position,
                             const Varying& velocity, const Varying& act, Varying& acc) {
    // the acceleration as a function of the state of the stage
    require_rows(m_, at);
    const ForwardDynamics f = evaluate_forward(m_, at, forces_, arena_);
    fill_residual(m_, at, f, f.solved, arena_);
    clear(acc);
    std::memcpy(acc.value, f.acc, m_.nv * sizeof(double));
    for (int c = 0; c < f.residual.count; c++) {
      const Component& part = f.residual.components[c];
      solve_acceleration(m_, at, f, c, 0, part.end_column(), arena_);
      // chain rule: the state of the stage as a function of the inputs
      for (int i = 0; i < part.nv; i++) {
        const int dof = part.dofs[i];
        const double* from = f.residual.row[dof];
        double* to = row(acc, dof);
        for (int k = 0; k < part.nv; k++) {
          add_row(to, from[k], row(position, part.dofs[k]));
          add_row(to, from[part.nv + k], row(velocity, part.dofs[k]));
        }
        for (int k = 0; k < part.na; k++) {
          add_row(to, from[part.act_column() + k], row(act, part.acts[k]));
        }
        const int ctrl = state_size(m_), applied = ctrl + m_.nu;
        for (int k = 0; k < part.nu; k++) to[ctrl + part.ctrls[k]] += from[part.ctrl_column() + k];
        for (int k = 0; k < part.nf; k++) {
          to[applied + part.dofs[k]] += from[part.force_column() + k];
        }
      }
    }
    if (extra_) add_extra(at, f, acc);
    // sensors are evaluated in the first stage
    if (first && (out_.C || out_.D || out_.Df)) {
      sense(m_, at, f, {out_.C, out_.D, out_.Df, out_.sensors}, arena_);
    }
    return f;
  }

  // Adds the extra columns of the acceleration.
  void add_extra(const DataView& at, const ForwardDynamics& f, Varying& acc) {
    ForwardDynamics driven = f;
    driven.residual = make_columns(m_, f.residual, extra_->count, arena_);
    const double* residual = extra_->at(at, f);
    for (int i = 0; i < m_.nv; i++) {
      for (int k = 0; k < extra_->count; k++) driven.residual.row[i][k] = residual[k * m_.nv + i];
    }
    for (int c = 0; c < f.residual.count; c++) {
      solve_acceleration(m_, at, driven, c, 0, extra_->count, arena_);
    }
    for (int i = 0; i < m_.nv; i++) {
      for (int k = 0; k < extra_->count; k++) row(acc, i)[inputs_ + k] += driven.residual.row[i][k];
    }
  }

  // Adds the change of x, a function of the length and rate of one actuator.
  void add_motion(const DataView& at, const NextActivation& next, const Number& x,
                  const Varying& position, const Varying& velocity, double* to) {
    const Path& p = next.path;
    const double length = next.gear * x.d[local::kLength], speed = next.gear * x.d[local::kRate];
    double* rate = arena_.take<double>(p.n);
    path_rate_derivative(p, at.qvel, rate);
    for (int k = 0; k < p.n; k++) {
      add_row(to, length * p.dlength[k] + speed * rate[k], row(position, p.dofs[k]));
      add_row(to, speed * p.moment[k], row(velocity, p.dofs[k]));
    }
  }

  // Computes the rates of the activations of a stage.
  void activate(const DataView& at, const Actuation& actuation, const Varying& position,
                const Varying& velocity, const Varying& act, Varying& act_rate) {
    clear(act_rate);
    for (int i = 0; i < m_.na; i++) {
      const NextActivation& next = actuation.next[i];
      const int a = next.actuator;
      double* to = row(act_rate, i);
      act_rate.value[i] = next.rate.v;
      add_motion(at, next, next.rate, position, velocity, to);
      for (int k = 0; k < m_.actuator_actnum[a]; k++) {
        add_row(to, next.rate.d[local::kAct + k], row(act, m_.actuator_actadr[a] + k));
      }
      for (int k = 0; k < m_.actuator_ctrlnum[a]; k++) {
        to[state_size(m_) + m_.actuator_ctrladr[a] + k] += next.rate.d[local::kCtrl + k];
      }
    }
  }

  // Computes the activations after the step. MuJoCo advances the initial activations with the mean
  // rates, by the rules of one step, at the lengths and speeds of the given stage.      (INT-15)
  void finish(const DataView& at, const Actuation& actuation, const Varying& position,
              const Varying& velocity, const Varying& mean, Varying& act) {
    restart(act, 2 * m_.nv, d_.act);
    if (!actuation.next) return;
    constexpr int kMean = local::kCtrl;  // the mean rates take the place of the controls
    for (int a = 0; a < m_.nactuator; a++) {
      // the next activations as functions of length, rate, activations and mean rates
      const int first = m_.actuator_actadr[a], out = m_.actuator_outadr[a];
      Variables<Number> x{};
      Number rates[local::kMaxActs], next[local::kMaxActs];
      x.length = at.actuator_length[out];
      x.rate = variable<local::kCount>(at.actuator_velocity[out], local::kRate);
      x.slewed = -1;
      for (int k = 0; k < m_.actuator_actnum[a]; k++) {
        x.act[k] = variable<local::kCount>(d_.act[first + k], local::kAct + k);
        rates[k] = variable<local::kCount>(mean.value[first + k], kMean + k);
      }
      next_activations(m_, a, x, rates, next);
      // chain rule
      for (int k = 0; k < m_.actuator_actnum[a]; k++) {
        double* to = row(act, first + k);
        std::memset(to, 0, width_ * sizeof(double));
        add_motion(at, actuation.next[first + k], next[k], position, velocity, to);
        for (int j = 0; j < m_.actuator_actnum[a]; j++) {
          to[2 * m_.nv + first + j] += next[k].d[local::kAct + j];
          add_row(to, next[k].d[kMean + j], row(mean, first + j));
        }
      }
    }
  }

  // Computes q = q0 [+] turn: scalars are added, and rotations are multiplied by exp(turn).
  // (INT-14)
  void move(const Varying& turn, double* qpos, Varying& position) const {
    std::memcpy(qpos, d_.qpos, m_.nq * sizeof(double));
    clear(position);
    start(position, 0, d_.qpos);
    for (int i = 0; i < m_.nv;) {
      const int joint = m_.dof_jntid[i], adr = m_.jnt_qposadr[joint];
      if (!is_rotation(m_, i)) {
        qpos[adr + i - m_.jnt_dofadr[joint]] += turn.value[i];
        add_row(row(position, i), 1, row(turn, i));
        i++;
        continue;
      }
      // q0 exp(u): dq = exp(u)^T dq0 + Jr(u) du
      double* quat = qpos + adr + (m_.jnt_type[joint] == joint::kFree ? 3 : 0);
      const Vec3 u = load3(turn.value + i);
      store_quaternion(quat, normalized(load_quaternion(quat)) * quaternion_exp(u));
      const Mat3 rotation = rotation_exp(u);
      for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) row(position, i + r)[i + s] = rotation(s, r);
      add_product(position, right_jacobian(u), turn, i);
      i += 3;
    }
  }

  // Computes the rate of the tangent coordinates: the velocity, for rotations Jr^-1(turn) v
  // since 4.0.
  void rates(const Varying& velocity, const Varying& turn, Varying& rate) const {
    copy(rate, velocity);
    if (!rates_are_turned()) return;
    for (int i = 0; i < m_.nv; i++) {
      if (!is_rotation(m_, i)) continue;
      const Vec3 u = load3(turn.value + i), v = load3(velocity.value + i);
      const Mat3 inverse = right_jacobian_inverse(u);
      store3(rate.value + i, inverse * v);
      for (int r = 0; r < 3; r++) std::memset(row(rate, i + r), 0, width_ * sizeof(double));
      add_product(rate, inverse, velocity, i);
      add_product(rate, right_jacobian_inverse_change(u, v), turn, i);
      i += 2;
    }
  }

  // Writes the rows of A, B and Bf from `first` on, and the extra columns.
  void write(const Varying& x, int first) const {
    const std::size_t nx = state_size(m_), nu = m_.nu, nv = m_.nv;
    for (int i = 0; i < x.rows; i++) {
      const double* from = row(x, i);
      const std::size_t r = first + i;
      if (out_.A) std::memcpy(out_.A + r * nx, from, nx * sizeof(double));
      if (out_.B) std::memcpy(out_.B + r * nu, from + nx, nu * sizeof(double));
      if (out_.Bf) std::memcpy(out_.Bf + r * nv, from + nx + nu, nv * sizeof(double));
      if (!extra_) continue;
      std::memcpy(extra_->out + r * extra_->count, from + inputs_, extra_->count * sizeof(double));
    }
  }

  const ModelView& m_;
  const DataView& d_;
  const Outputs& out_;
  const StageColumns* extra_;
  Arena& arena_;
  bool forces_;
  RungeKuttaRecord* record_;  // null: none
  int inputs_, width_;        // number of columns of the inputs, and of all columns
};

}  // namespace

bool rates_are_turned() { return engine().version >= kMuJoCo400; }

bool is_rotation(const ModelView& m, int dof) {
  const int joint = m.dof_jntid[dof], type = m.jnt_type[joint];
  return type == joint::kBall || (type == joint::kFree && dof >= m.jnt_dofadr[joint] + 3);
}

void runge_kutta(const ModelView& m, const DataView& d, const Outputs& out,
                 const StageColumns* extra, Arena& arena) {
  // the contacts of later stages are not known yet, so the converged collider is used in all stages
  RungeKutta(converged_model(m), d, out, extra, out.Bf || out.Df, nullptr, arena).run();
}

void record_runge_kutta(const ModelView& m, const DataView& d, bool forces,
                        const StageColumns* extra, RungeKuttaRecord& record, Arena& arena) {
  RungeKutta(converged_model(m), d, {}, extra, forces, &record, arena).run();
}

}  // namespace mujacobian

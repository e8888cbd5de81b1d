#include "step/runge_kutta.h"

#include <cstring>

#include "dynamics/forward.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "sensor/sensor.h"
#include "spatial/quaternion.h"
#include "spatial/rotation.h"
#include "step/support.h"

namespace mujacobian {
namespace {

constexpr int kStages = 4;
constexpr double kNext[kStages - 1] = {0.5, 0.5, 1};                   // stage i+1 from stage i
constexpr double kWeight[kStages] = {1 / 6., 1 / 3., 1 / 3., 1 / 6.};  // of the stages in the sum

// A vector over the dofs and its derivative with respect to all inputs of the step: a row per dof,
// columns (q, v, act, ctrl, applied force).
struct Varying {
  double* value;
  double* change;
};

// A copy of the caller's state in an mjData of our own.
class Scratch {
 public:
  Scratch(const ModelView& m, const DataView& d, Arena& arena) : data_(make_data(m.address)) {
    const int spec = engine().integration_spec;
    double* state = arena.take<double>(engine().mj_stateSize(m.address, spec));
    engine().mj_getState(m.address, d.address, state, spec);
    engine().mj_setState(m.address, data_, state, spec);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { engine().mj_deleteData(data_); }

  // The data at another position and velocity, evaluated.
  DataView at(const ModelView& m, const double* qpos, const double* qvel) {
    DataView d = view_data(data_);
    std::memcpy(const_cast<double*>(d.qpos), qpos, m.nq * sizeof(double));
    std::memcpy(const_cast<double*>(d.qvel), qvel, m.nv * sizeof(double));
    forward(m.address, data_);
    return view_data(data_);
  }

 private:
  void* data_;
};

bool is_rotation(const ModelView& m, int dof) {
  int joint = m.dof_jntid[dof], type = m.jnt_type[joint];
  return type == joint::kBall || (type == joint::kFree && dof >= m.jnt_dofadr[joint] + 3);
}

class RungeKutta {
 public:
  RungeKutta(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena)
      : m_(m), d_(d), out_(out), arena_(arena), forces_(out.Bf || out.Df) {
    width_ = 2 * m.nv + m.na + m.nu + (forces_ ? m.nv : 0);
  }

  void run() {
    Scratch scratch(m_, d_, arena_);
    double* qpos = arena_.take<double>(m_.nq);
    Varying rate = make(), velocity = make(), acc = make();
    Varying rate_sum = make(), acc_sum = make(), turn = make(), position = make();
    start(position, 0, d_.qpos);
    start(velocity, m_.nv, d_.qvel);
    copy(rate, velocity);

    DataView at = d_;
    for (int i = 0; i < kStages; i++) {
      accelerate(at, i == 0, position, velocity, acc);
      add(rate_sum, kWeight[i], rate);
      add(acc_sum, kWeight[i], acc);
      if (i == kStages - 1) break;

      // the next stage: a part of the step along this one's rates                        (INT-13)
      const double h = kNext[i] * m_.opt.timestep;
      clear(turn);
      add(turn, h, rate);
      move(turn, qpos, position);
      clear(velocity);
      start(velocity, m_.nv, d_.qvel);
      add(velocity, h, acc);
      rates(velocity, turn, rate);
      at = scratch.at(m_, qpos, velocity.value);
    }

    clear(turn);
    add(turn, m_.opt.timestep, rate_sum);
    move(turn, qpos, position);
    clear(velocity);
    start(velocity, m_.nv, d_.qvel);
    add(velocity, m_.opt.timestep, acc_sum);
    write(position, 0);
    write(velocity, m_.nv);
  }

 private:
  Varying make() {
    return {arena_.zeros<double>(m_.nv),
            arena_.zeros<double>(static_cast<std::size_t>(m_.nv) * width_)};
  }
  double* row(const Varying& x, int i) const {
    return x.change + static_cast<std::ptrdiff_t>(i) * width_;
  }
  std::size_t size() const { return static_cast<std::size_t>(m_.nv) * width_; }
  void clear(Varying& x) const {
    std::memset(x.value, 0, m_.nv * sizeof(double));
    std::memset(x.change, 0, size() * sizeof(double));
  }
  void copy(Varying& to, const Varying& from) const {
    std::memcpy(to.value, from.value, m_.nv * sizeof(double));
    std::memcpy(to.change, from.change, size() * sizeof(double));
  }
  void add(Varying& to, double scale, const Varying& from) const {
    for (int i = 0; i < m_.nv; i++) to.value[i] += scale * from.value[i];
    for (std::size_t k = 0; k < size(); k++) to.change[k] += scale * from.change[k];
  }
  void add_row(double* to, double scale, const double* from) const {
    for (int c = 0; c < width_; c++) to[c] += scale * from[c];
  }

  // A part of the initial state: its own columns start at `column`.
  void start(Varying& x, int column, const double* value) const {
    for (int i = 0; i < m_.nv; i++) {
      if (column) x.value[i] = value[i];
      row(x, i)[column + i] = 1;
    }
  }

  // Rows dof .. dof+2 of `to` += g rows dof .. dof+2 of `from`
  void add_product(Varying& to, const Mat3& g, const Varying& from, int dof) const {
    for (int r = 0; r < 3; r++)
      for (int s = 0; s < 3; s++) add_row(row(to, dof + r), g(r, s), row(from, dof + s));
  }

  // The acceleration of a stage, as a function of the step's inputs.
  void accelerate(const DataView& at, bool first, const Varying& position, const Varying& velocity,
                  Varying& acc) {
    require_rows(m_, at);
    const Forward f = evaluate_forward(m_, at, forces_, arena_);
    fill_residual(m_, at, f, f.solved, arena_);
    clear(acc);
    std::memcpy(acc.value, f.acc, m_.nv * sizeof(double));
    for (int c = 0; c < f.residual.count; c++) {
      const Component& part = f.residual.components[c];
      solve_acceleration(m_, at, f, c, 0, part.end_column(), arena_);
      for (int i = 0; i < part.nv; i++) {
        const int dof = part.dofs[i];
        const double* from = f.residual.row[dof];
        double* to = row(acc, dof);
        for (int k = 0; k < part.nv; k++) {
          add_row(to, from[k], row(position, part.dofs[k]));
          add_row(to, from[part.nv + k], row(velocity, part.dofs[k]));
        }
        const int ctrl = 2 * m_.nv + m_.na, applied = ctrl + m_.nu;
        for (int k = 0; k < part.nu; k++) to[ctrl + part.ctrls[k]] += from[part.ctrl_column() + k];
        for (int k = 0; k < part.nf; k++) {
          to[applied + part.dofs[k]] += from[part.force_column() + k];
        }
      }
    }
    // sensors are those of the first stage
    if (first && (out_.C || out_.D || out_.Df)) {
      sense(m_, at, f, {out_.C, out_.D, out_.Df}, arena_);
    }
  }

  // q = q0 [+] turn: numbers add, rotations turn by exp(turn)                              (INT-14)
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
      double* quat = qpos + adr + (m_.jnt_type[joint] == joint::kFree ? 3 : 0);
      const Vec3 u = load3(turn.value + i);
      store_quaternion(quat, normalized(load_quaternion(quat)) * quaternion_exp(u));
      const Mat3 carried = rotation_exp(u);
      for (int r = 0; r < 3; r++)
        for (int s = 0; s < 3; s++) row(position, i + r)[i + s] = carried(s, r);
      add_product(position, right_jacobian(u), turn, i);
      i += 3;
    }
  }

  // The rate of the tangent coordinates: the velocity, since 4.0 for rotations Jr^-1(turn) v
  void rates(const Varying& velocity, const Varying& turn, Varying& rate) const {
    copy(rate, velocity);
    if (engine().version < 4000000) return;
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

  // Rows first .. first+nv-1 of A, B, Bf
  void write(const Varying& x, int first) const {
    const std::size_t nx = 2 * m_.nv + m_.na, nu = m_.nu, nv = m_.nv;
    for (int i = 0; i < m_.nv; i++) {
      const double* from = row(x, i);
      const std::size_t r = first + i;
      if (out_.A) std::memcpy(out_.A + r * nx, from, nx * sizeof(double));
      if (out_.B) std::memcpy(out_.B + r * nu, from + nx, nu * sizeof(double));
      if (out_.Bf) std::memcpy(out_.Bf + r * nv, from + nx + nu, nv * sizeof(double));
    }
  }

  const ModelView& m_;
  const DataView& d_;
  const Outputs& out_;
  Arena& arena_;
  bool forces_;
  int width_;
};

}  // namespace

void runge_kutta(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena) {
  RungeKutta(m, d, out, arena).run();
}

}  // namespace mujacobian

#include "step/transition.h"

#include <cstring>

#include "contact/collider.h"
#include "dynamics/convergence.h"
#include "layout/enums.h"
#include "linear/lanes.h"
#include "sensor/sensor.h"
#include "spatial/rotation.h"
#include "step/activation.h"
#include "step/differential.h"
#include "step/runge_kutta.h"
#include "step/sleep.h"

namespace mujacobian {
namespace {

// Returns whether the indices are consecutive.
bool is_run(const int* index, int n) { return n == 0 || index[n - 1] - index[0] == n - 1; }

// One block of output columns: the columns `index` of `out` are copied from the columns `from` ..
// of the rows of a component.
struct Target {
  double* out;
  int width;  // number of columns of `out`
  int from;
  const int* index;
  int n;
  bool run;  // the columns `index` are consecutive

  double* row(int i) const { return out + static_cast<std::ptrdiff_t>(i) * width; }
};

// Writes the velocity row h x and the position row h^2 x of a dof that is integrated as a scalar.
void write_scalar(const Target& target, const double* x, double h, double* velocity,
                  double* position) {
  x += target.from;
  int k = 0;
  if (target.run && target.n) {
    const int first = target.index[0];
    for (Lanes step = broadcast(h); k + kLanes <= target.n; k += kLanes) {
      Lanes v = step * load_lanes(x + k);
      store_lanes(velocity + first + k, v);
      store_lanes(position + first + k, step * v);
    }
  }
  for (; k < target.n; k++) {
    double v = h * x[k];
    velocity[target.index[k]] = v;
    position[target.index[k]] = h * v;
  }
}

// Writes the velocity rows h x_r and the position rows sum_s G_rs h x_s of the three dofs of a
// rotation.
void write_rotation(const Target& target, double* const x[3], double h, const Mat3& g,
                    int velocity_row, int position_row) {
  int k = 0;
  if (target.run && target.n) {
    const int first = target.index[0];
    for (Lanes step = broadcast(h); k + kLanes <= target.n; k += kLanes) {
      Lanes v[3];
      for (int r = 0; r < 3; r++) {
        v[r] = step * load_lanes(x[r] + target.from + k);
        store_lanes(target.row(velocity_row + r) + first + k, v[r]);
      }
      for (int r = 0; r < 3; r++) {
        store_lanes(
            target.row(position_row + r) + first + k,
            broadcast(g(r, 0)) * v[0] + broadcast(g(r, 1)) * v[1] + broadcast(g(r, 2)) * v[2]);
      }
    }
  }
  for (; k < target.n; k++) {
    int c = target.index[k];
    Vec3 v = {h * x[0][target.from + k], h * x[1][target.from + k], h * x[2][target.from + k]};
    Vec3 p = g * v;
    target.row(velocity_row)[c] = v.x, target.row(position_row)[c] = p.x;
    target.row(velocity_row + 1)[c] = v.y, target.row(position_row + 1)[c] = p.y;
    target.row(velocity_row + 2)[c] = v.z, target.row(position_row + 2)[c] = p.z;
  }
}

// The blocks of output columns of a component, and the columns first .. last-1 that they need.
struct Targets {
  Target target[5];
  int count;
  int first, last;
};

Targets make_targets(const ModelView& m, const Component& part, const Outputs& out) {
  Targets t{};
  const int nx = state_size(m);
  auto add = [&](double* block, int width, int from, const int* index, int n) {
    t.target[t.count++] = {block, width, from, index, n, is_run(index, n)};
  };
  if (out.A) {
    add(out.A, nx, 0, part.dofs, part.nv);
    add(out.A + m.nv, nx, part.nv, part.dofs, part.nv);
    if (part.na) add(out.A + 2 * m.nv, nx, part.act_column(), part.acts, part.na);
  }
  if (out.B) add(out.B, m.nu, part.ctrl_column(), part.ctrls, part.nu);
  if (out.Bf) add(out.Bf, m.nv, part.force_column(), part.dofs, part.nv);
  bool state = out.A || out.C, ctrl = out.B || out.D, force = out.Bf || out.Df;
  t.first = state ? 0 : ctrl ? part.ctrl_column() : part.force_column();
  t.last = force ? part.end_column() : ctrl ? part.force_column() : part.ctrl_column();
  return t;
}

// Sets the blocks to zero of which the components do not write every entry.
void clear_unwritten(const ModelView& m, const DofRows& residual, const Outputs& out) {
  const std::size_t nx = state_size(m);
  bool whole = residual.count == 1;
  auto clear = [&](double* block, std::size_t width, bool covered) {
    if (block && !covered) std::memset(block, 0, nx * width * sizeof(double));
  };
  clear(out.A, nx, whole && m.na == 0);
  clear(out.B, m.nu, whole && m.na == 0 && residual.components[0].nu == m.nu);
  clear(out.Bf, m.nv, whole && m.na == 0);
}

// Writes the derivatives of v+ = v + h w and q+ = q [+] h v+ for every joint of a component, whose
// rows contain dw.                                                                (INT-1, INT-2)
void write_component(const ModelView& m, const DataView& d, const double* w,
                     const DofRows& residual, const Component& part, const Targets& targets,
                     double* A) {
  const double h = m.opt.timestep;
  const int nv = m.nv;
  const std::ptrdiff_t nx = 2 * nv + m.na;
  for (int l = 0; l < part.nv;) {
    int dof = part.dofs[l], jnt = m.dof_jntid[dof], type = m.jnt_type[jnt];
    bool rotation = type == joint::kBall || (type == joint::kFree && dof >= m.jnt_dofadr[jnt] + 3);

    // scalar: dv+ = dv + h dw, dq+ = dq + h dv+
    if (!rotation) {
      for (int t = 0; t < targets.count; t++) {
        const Target& target = targets.target[t];
        write_scalar(target, residual.row[dof], h, target.row(nv + dof), target.row(dof));
      }
      if (A) {
        A[(nv + dof) * nx + nv + dof] += 1;
        A[dof * nx + nv + dof] += h;
        A[dof * nx + dof] += 1;
      }
      l++;
      continue;
    }

    // rotation: q+ = q exp(h v+), dq+ = exp(h v+)^T dq + Jr(h v+) h dv+
    Vec3 turn = {h * (d.qvel[dof] + h * w[dof]), h * (d.qvel[dof + 1] + h * w[dof + 1]),
                 h * (d.qvel[dof + 2] + h * w[dof + 2])};
    Mat3 jacobian = h * right_jacobian(turn), carried = rotation_exp(turn);
    for (int t = 0; t < targets.count; t++) {
      write_rotation(targets.target[t], residual.row + dof, h, jacobian, nv + dof, dof);
    }
    for (int r = 0; A && r < 3; r++) {
      A[(nv + dof + r) * nx + nv + dof + r] += 1;
      for (int k = 0; k < 3; k++) {
        A[(dof + r) * nx + dof + k] += carried(k, r);
        A[(dof + r) * nx + nv + dof + k] += jacobian(r, k);
      }
    }
    l += 3;
  }
}

}  // namespace

Outputs batch_item(const ModelView& m, const Outputs& out, std::size_t index) {
  const std::size_t nx = state_size(m), nu = m.nu, nv = m.nv, ns = m.nsensordata;
  auto item = [&](double* block, std::size_t size) {
    return block ? block + index * size : nullptr;
  };
  return {item(out.A, nx * nx),  item(out.B, nx * nu),  item(out.C, ns * nx), item(out.D, ns * nu),
          item(out.Bf, nx * nv), item(out.Df, ns * nv), out.sensors};
}

bool needs_acceleration(const ModelView& m, const Outputs& out) {
  return (out.C || out.D || out.Df) && senses_acceleration(m, out.sensors);
}

void write_transition(const ModelView& m, const DataView& d, const StepDifferential& s,
                      const Outputs& out, Arena& arena) {
  const DofRows& residual = s.forward.residual;
  clear_unwritten(m, residual, out);
  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    const Targets targets = make_targets(m, part, out);
    s.solve(m, d, c, targets.first, targets.last, arena);
    if (out.A) check_slope(m, d, s.forward, s.step_rows, c, arena);
    write_component(m, d, s.step.w, s.step_rows, s.step_rows.components[c], targets, out.A);
  }
  write_activations(m, d, s.forward.paths.actuation, out, arena);
  if (out.C || out.D || out.Df) {
    sense(m, d, s.forward, {out.C, out.D, out.Df, out.sensors}, arena);
  }
}

void transition(const ModelView& given_m, const DataView& given_d, const Outputs& out,
                Arena& arena) {
  // converged contacts; RK4 has a function of its own
  const bool wants_sensors = out.C || out.D || out.Df;
  const Sleep sleep(given_m, given_d, wants_sensors, out.sensors, arena);
  const bool solved = !sleep.is_empty() || (wants_sensors && senses_solution(given_m, out.sensors));
  const auto& [m, evaluated] = converge_collider(given_m, given_d, solved);
  const DataView& d = sleep.at_rest(m, evaluated, arena);
  if (m.opt.integrator == integrator::kRK4) return runge_kutta(m, d, out, nullptr, arena);
  // right-hand sides and factors, then their solutions
  const bool senses = needs_acceleration(m, out);
  const StepDifferential s = differentiate_step(m, d, out.Bf || out.Df, senses, arena);
  write_transition(m, d, s, out, arena);
  sleep.hold(m, out);
}

}  // namespace mujacobian

#include "step/transition.h"

#include <cstring>

#include "constraint/optimum.h"
#include "layout/enums.h"
#include "smooth/external.h"
#include "smooth/inertia_derivative.h"
#include "smooth/inverse_dynamics.h"
#include "smooth/passive.h"
#include "smooth/tendon.h"
#include "spatial/lanes.h"
#include "spatial/rotation.h"
#include "step/integrator.h"
#include "step/support.h"

namespace mujacobian {
namespace {

// -dg at acceleration `acc`, without constraints and without the change of the integrator's damping
void fill_residual(const ModelView& m, const DataView& d, const Topology& tree,
                   const PathForces& paths, const double* acc, const Residual& residual,
                   Arena& arena) {
  inverse_dynamics_derivative(m, d, tree, acc, residual, arena);
  add_tendon_armature(m, d, tree, acc, residual, arena);
  add_applied(m, d, residual, arena);
  add_gravity_compensation(m, d, paths.actuation.frozen, residual, arena);
  add_passive(m, d, residual);
  for (int k = 0; k < paths.tendon_count; k++) {
    add_path_force(paths.tendon[k], d.qvel, nullptr, residual, arena);
  }
  for (int k = 0; k < paths.actuation.count; k++) {
    add_path_force(paths.actuation.forces[k], d.qvel, paths.actuation.frozen, residual, arena);
  }
}

// X <- (M + h Dhat)^-1 X for columns first .. last-1 of a component
void solve_component(const ModelView& m, const Topology& tree, const Integration& step,
                     const Residual& residual, const Component& part, int first, int last,
                     Arena& arena) {
  for (int i = 0; i < part.nv;) {
    int t = m.dof_treeid[part.dofs[i]], num = m.tree_dofnum[t];
    double* rows = residual.row[part.dofs[i]];
    const FreeBlock* block = step.free ? step.free[t] : nullptr;
    if (!block) {
      solve_inertia(m, tree, step.factor, m.tree_dofadr[t], num, rows, part.stride, first, last);
    } else {
      double* copy = arena.take<double>(6 * part.stride);
      std::memcpy(copy, rows, 6 * part.stride * sizeof(double));
      for (int r = 0; r < 6; r++)
        for (int c = first; c < last; c++) {
          double sum = 0;
          for (int k = 0; k < 6; k++) sum += block->inverse[6 * r + k] * copy[k * part.stride + c];
          rows[r * part.stride + c] = sum;
        }
    }
    i += num;
  }
}

bool is_run(const int* index, int n) { return n == 0 || index[n - 1] - index[0] == n - 1; }

// One block of output columns: the columns `index` of `out` come from `from` in a component's rows.
struct Target {
  double* out;
  int width;  // columns of `out`
  int from;
  const int* index;
  int n;
  bool run;  // the columns are consecutive

  double* row(int i) const { return out + static_cast<std::ptrdiff_t>(i) * width; }
};

// Velocity row h x and position row h^2 x of a dof that is integrated as a number.
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

// Velocity rows h x_r and position rows sum_s G_rs h x_s of the three dofs of a rotation.
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

// v+ = v + h w and q+ = q [+] h v+ for every joint of a component                 (INT-1, INT-2)
void write_component(const ModelView& m, const DataView& d, const double* w,
                     const Residual& residual, const Component& part, const Target* targets,
                     int count, double* A) {
  const double h = m.opt.timestep;
  const int nv = m.nv;
  const std::ptrdiff_t nx = 2 * nv;
  for (int l = 0; l < part.nv;) {
    int dof = part.dofs[l], jnt = m.dof_jntid[dof], type = m.jnt_type[jnt];
    bool rotation = type == joint::kBall || (type == joint::kFree && dof >= m.jnt_dofadr[jnt] + 3);
    if (!rotation) {
      for (int t = 0; t < count; t++) {
        write_scalar(targets[t], residual.row[dof], h, targets[t].row(nv + dof),
                     targets[t].row(dof));
      }
      if (A) {
        A[(nv + dof) * nx + nv + dof] += 1;
        A[dof * nx + nv + dof] += h;
        A[dof * nx + dof] += 1;
      }
      l++;
      continue;
    }

    // q+ = q exp(h v+): dq+ = exp(h v+)^T dq + Jr(h v+) h dv+
    Vec3 turn = {h * (d.qvel[dof] + h * w[dof]), h * (d.qvel[dof + 1] + h * w[dof + 1]),
                 h * (d.qvel[dof + 2] + h * w[dof + 2])};
    Mat3 jacobian = h * right_jacobian(turn), carried = rotation_exp(turn);
    for (int t = 0; t < count; t++) {
      write_rotation(targets[t], residual.row + dof, h, jacobian, nv + dof, dof);
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

void transition(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena) {
  if (m.nv == 0) return;
  require_rows(m, d);

  const Topology tree = topology(m, arena);
  PathForces paths;
  paths.tendon = arena.take<PathForce>(m.ntendon);
  paths.tendon_count = tendon_forces(m, d, paths.tendon, arena);
  paths.actuation = actuation(m, d, arena);

  // trees that constraints couple form one component
  Blocks blocks = make_blocks(m, d, arena);
  const Residual residual = make_residual(m, d, blocks, out.Bf, arena);
  bool* constrained = arena.zeros<bool>(residual.count);
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (b.n) constrained[residual.component[b.dofs[0]]] = true;
  }

  // the acceleration that solves the constraints, and the one that is integrated
  Optimum optimum{};
  const double* acc = d.qacc;
  const double* force = d.qfrc_smooth;
  if (blocks.count) {
    optimum = find_optimum(m, d, tree, residual, blocks, arena);
    acc = optimum.acc;
    for (int i = 0; i < m.nv; i++) optimum.force[i] += d.qfrc_smooth[i];
    force = optimum.force;
  }
  const Integration step = integrate(m, d, tree, paths, acc, force, arena);

  // Unconstrained components are differentiated at w and solved once. Constrained ones are
  // differentiated at acc and solved for d(acc) first; `late` is what enters after that.
  const bool twice = blocks.count && !step.explicit_;
  double* at = arena.take<double>(m.nv);
  double* lag = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) {
    bool held = constrained[residual.component[i]];
    at[i] = held ? acc[i] : step.w[i];
    lag[i] = held ? step.w[i] - acc[i] : 0;
  }
  fill_residual(m, d, tree, paths, at, residual, arena);
  Residual late = residual;
  if (twice) {
    late = make_like(m, residual, arena);
    inertia_derivative(m, d, tree, lag, late, arena);
  }
  add_damping_change(m, d, tree, paths, step, late, arena);
  add_blocks(m, d, tree, blocks, acc, residual, arena);

  // what no component writes
  const std::size_t nv = m.nv, nu = m.nu;
  bool whole = residual.count == 1;
  if (out.A && !whole) std::memset(out.A, 0, 4 * nv * nv * sizeof(double));
  if (out.B && !(whole && residual.components[0].nu == m.nu)) {
    std::memset(out.B, 0, 2 * nv * nu * sizeof(double));
  }
  if (out.Bf && !whole) std::memset(out.Bf, 0, 2 * nv * nv * sizeof(double));

  for (int c = 0; c < residual.count; c++) {
    const Component& part = residual.components[c];
    int ctrl = 2 * part.nv, applied = ctrl + part.nu, end = applied + part.nf;
    bool run = is_run(part.dofs, part.nv);
    Target targets[4];
    int count = 0;
    if (out.A) {
      targets[count++] = {out.A, 2 * m.nv, 0, part.dofs, part.nv, run};
      targets[count++] = {out.A + nv, 2 * m.nv, part.nv, part.dofs, part.nv, run};
    }
    if (out.B) {
      bool ctrl_run = is_run(part.ctrls, part.nu);
      targets[count++] = {out.B, m.nu, ctrl, part.ctrls, part.nu, ctrl_run};
    }
    if (out.Bf) targets[count++] = {out.Bf, m.nv, applied, part.dofs, part.nv, run};
    int first = out.A ? 0 : out.B ? ctrl : applied;
    int last = out.Bf ? end : out.B ? applied : ctrl;

    // d(acc) of a constrained component, which drives w through M d(acc)                 (INT-10)
    if (constrained[c]) solve_metric(m, tree, optimum, part, c, first, last);
    if (twice && constrained[c]) {
      for (int i = 0; i < part.nv;) {
        int t = m.dof_treeid[part.dofs[i]], num = m.tree_dofnum[t];
        multiply_inertia(m, tree, d.M, m.tree_dofadr[t], num, residual.row[part.dofs[i]],
                         late.row[part.dofs[i]], part.stride, first, last);
        i += num;
      }
    } else if (twice) {
      double* x = late.components[c].x;
      for (int k = 0; k < part.nv * part.stride; k++) x[k] += part.x[k];
    }
    if (!constrained[c] || twice) {
      solve_component(m, tree, step, late, late.components[c], first, last, arena);
    }
    write_component(m, d, step.w, late, late.components[c], targets, count, out.A);
  }
}

}  // namespace mujacobian

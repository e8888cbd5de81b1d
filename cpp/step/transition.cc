#include "step/transition.h"

#include <cstring>

#include "layout/enums.h"
#include "smooth/external.h"
#include "smooth/inverse_dynamics.h"
#include "smooth/passive.h"
#include "smooth/tendon.h"
#include "spatial/lanes.h"
#include "spatial/rotation.h"
#include "step/integrator.h"
#include "step/support.h"

namespace mujacobian {
namespace {

// -dg at the acceleration w that is integrated
void fill_residual(const ModelView& m, const DataView& d, const Topology& tree,
                   const PathForces& paths, const Integration& step, const Residual& residual,
                   Arena& arena) {
  inverse_dynamics_derivative(m, d, tree, step.w, residual, arena);
  add_tendon_armature(m, d, tree, step.w, residual, arena);
  add_applied(m, d, residual, arena);
  add_gravity_compensation(m, d, paths.actuation.frozen, residual, arena);
  add_passive(m, d, residual);
  for (int k = 0; k < paths.tendon_count; k++) {
    add_path_force(paths.tendon[k], d.qvel, nullptr, residual, arena);
  }
  for (int k = 0; k < paths.actuation.count; k++) {
    add_path_force(paths.actuation.forces[k], d.qvel, paths.actuation.frozen, residual, arena);
  }
  add_damping_change(m, d, tree, paths, step, residual, arena);
}

// X <- (M + h Dhat)^-1 X for columns first .. last-1 of a component
void solve_component(const ModelView& m, const Topology& tree, const Integration& step,
                     const Residual& residual, const Component& part, int first, int last,
                     Arena& arena) {
  for (int i = 0; i < part.nv;) {
    int t = m.dof_treeid[part.dofs[i]], num = m.tree_dofnum[t];
    double* rows = residual.row[part.dofs[i]];
    const FreeBlock* block = nullptr;
    for (int k = 0; k < step.block_count && !block; k++) {
      if (step.blocks[k].tree == t) block = step.blocks + k;
    }
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

// to[index[k]] = scale * from[k]
void scatter(const double* from, const int* index, int n, bool run, double scale, double* to) {
  if (run) {
    if (n) to += index[0];
    for (int k = 0; k < n; k++) to[k] = scale * from[k];
  } else {
    for (int k = 0; k < n; k++) to[index[k]] = scale * from[k];
  }
}

// to[index[k]] = sum_r coefficient[r] rows[r][index[k]] over three rows
void combine(const double* const rows[3], const double coefficient[3], const int* index, int n,
             bool run, double* to) {
  for (int k = 0; k < n; k++) {
    int c = run ? index[0] + k : index[k];
    to[c] = coefficient[0] * rows[0][c] + coefficient[1] * rows[1][c] + coefficient[2] * rows[2][c];
  }
}

// One block of output columns: the columns `index` of `out` come from `from` in a component's rows.
struct Target {
  double* out;
  int width;         // columns of `out`
  int from;
  const int* index;
  int n;
  bool run;
};

// v+ = v + h w and q+ = q [+] h v+ for every joint of a component                       (INT-1, INT-2)
void write_component(const ModelView& m, const DataView& d, const double* w,
                     const Residual& residual, const Component& part, const Target* targets,
                     int count, double* A) {
  const double h = m.opt.timestep;
  const int nv = m.nv;
  for (int l = 0; l < part.nv;) {
    int dof = part.dofs[l], jnt = m.dof_jntid[dof], type = m.jnt_type[jnt];
    bool scalar = type == joint::kSlide || type == joint::kHinge;
    bool translation = type == joint::kFree && dof == m.jnt_dofadr[jnt];
    int num = scalar ? 1 : 3;

    // velocity rows
    for (int i = dof; i < dof + num; i++) {
      for (int t = 0; t < count; t++) {
        const Target& target = targets[t];
        scatter(residual.row[i] + target.from, target.index, target.n, target.run, h,
                target.out + static_cast<std::ptrdiff_t>(nv + i) * target.width);
      }
      if (A) A[static_cast<std::ptrdiff_t>(nv + i) * 2 * nv + nv + i] += 1;
    }

    // position rows: h times the velocity rows for translations, Jr for rotations
    Mat3 jacobian, carried;
    if (!scalar && !translation) {
      double v[3];
      for (int k = 0; k < 3; k++) v[k] = h * (d.qvel[dof + k] + h * w[dof + k]);
      jacobian = h * right_jacobian(load3(v));
      carried = rotation_exp(load3(v));  // its transpose is d q+/dq
    }
    for (int r = 0; r < num; r++) {
      for (int t = 0; t < count; t++) {
        const Target& target = targets[t];
        double* to = target.out + static_cast<std::ptrdiff_t>(dof + r) * target.width;
        const double* from = target.out + static_cast<std::ptrdiff_t>(nv + dof) * target.width;
        if (scalar || translation) {
          from += static_cast<std::ptrdiff_t>(r) * target.width;
          for (int k = 0; k < target.n; k++) {
            int c = target.run ? target.index[0] + k : target.index[k];
            to[c] = h * from[c];
          }
        } else {
          const double* rows[3] = {from, from + target.width, from + 2 * target.width};
          combine(rows, jacobian.m + 3 * r, target.index, target.n, target.run, to);
        }
      }
      if (!A) continue;
      double* to = A + static_cast<std::ptrdiff_t>(dof + r) * 2 * nv + dof;
      if (scalar || translation) {
        to[r] += 1;
      } else {
        for (int k = 0; k < 3; k++) to[k] += carried(k, r);
      }
    }
    l += num;
  }
}

}  // namespace

void transition(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena) {
  require_no_constraints(m, d);
  const std::size_t nv = m.nv, nu = m.nu;
  if (out.A) std::memset(out.A, 0, 4 * nv * nv * sizeof(double));
  if (out.B) std::memset(out.B, 0, 2 * nv * nu * sizeof(double));
  if (out.Bf) std::memset(out.Bf, 0, 2 * nv * nv * sizeof(double));
  if (nv == 0) return;

  const Topology tree = topology(m, arena);
  PathForces paths;
  paths.tendon = arena.take<PathForce>(m.ntendon);
  paths.tendon_count = tendon_forces(m, d, paths.tendon, arena);
  paths.actuation = actuation(m, d, arena);
  const Integration step = integrate(m, d, tree, paths, arena);
  const Residual residual = make_residual(m, d, out.Bf, arena);
  fill_residual(m, d, tree, paths, step, residual, arena);

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
    if (out.B) targets[count++] = {out.B, m.nu, ctrl, part.ctrls, part.nu, is_run(part.ctrls, part.nu)};
    if (out.Bf) targets[count++] = {out.Bf, m.nv, applied, part.dofs, part.nv, run};
    int first = out.A ? 0 : out.B ? ctrl : applied;
    int last = out.Bf ? end : out.B ? applied : ctrl;
    solve_component(m, tree, step, residual, part, first, last, arena);
    write_component(m, d, step.w, residual, part, targets, count, out.A);
  }
}

}  // namespace mujacobian

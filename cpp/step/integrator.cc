#include "step/integrator.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "layout/enums.h"
#include "smooth/fluid.h"
#include "smooth/inverse_dynamics.h"
#include "smooth/passive.h"
#include "smooth/tendon.h"
#include "smooth/velocity.h"
#include "step/free_body.h"
#include "step/lu.h"

namespace mujacobian {
namespace {

// Euler treats dof damping implicitly unless nothing is damped or a flag forbids it.
bool euler_is_damped(const ModelView& m) {
  if ((m.opt.disableflags & disable::kEulerDamp) || !dampers_enabled(m)) return false;
  for (int i = 0; i < m.nv; i++) {
    const double* p = m.dof_dampingpoly + kNPoly * i;
    if (m.dof_damping[i] > 0 || p[0] != 0 || p[1] != 0) return true;
    if (m.jnt_actuatorid[m.dof_jntid[i]] != -1) return true;
  }
  return false;
}

// The integrator's D has the entry (i, j): the pattern of M, where a tree has a block of its own
// all pairs of dofs on one chain.
bool in_damping(const ModelView& m, const Topology& tree, const Integration& step, int i, int j) {
  return step.block[m.dof_treeid[i]] ? tree.is_related(i, j) : in_mass_matrix(m, tree, i, j);
}

template <class F>
void visit_damping(const PathForces& paths, F visit) {
  for (int k = 0; k < paths.tendon_count; k++) visit(paths.tendon[k]);
  for (int k = 0; k < paths.actuation.count; k++) visit(paths.actuation.forces[k]);
}

// Subtract h D of the path forces from the packed matrix, or from the tree's block.
void subtract_path_damping(const ModelView& m, const Topology& tree, const PathForces& paths,
                           double* packed, TreeBlock* const* blocks) {
  visit_damping(paths, [&](const PathForce& f) {
    if (f.damping == 0) return;
    const Path& p = f.path;
    for (int a = 0; a < p.n; a++) {
      for (int b = 0; b < p.n; b++) {
        int i = p.dofs[a], j = p.dofs[b];
        double value = m.opt.timestep * f.damping * p.moment[a] * p.moment[b];
        if (TreeBlock* block = blocks[m.dof_treeid[i]]) {
          if (!tree.is_related(i, j)) continue;
          block->matrix[block->n * (i - block->dof) + j - block->dof] -= value;
        } else if (j <= i && in_mass_matrix(m, tree, i, j)) {
          packed[packed_index(m, tree, i, j)] -= value;
        }
      }
    }
  });
}

// Subtract h D of the medium likewise.
void subtract_fluid_damping(const ModelView& m, const DataView& d, const Topology& tree,
                            bool symmetric, double* packed, TreeBlock* const* blocks,
                            Arena& arena) {
  const FluidDamping damping = fluid_damping(m, d, symmetric, arena);
  if (!damping.composite) return;
  const double h = m.opt.timestep;
  for (int i = 0; i < m.nv; i++) {
    TreeBlock* block = blocks[m.dof_treeid[i]];
    for (int j = i; j >= 0; j = m.dof_parentid[j]) {
      if (block) {
        int r = i - block->dof, c = j - block->dof;
        block->matrix[block->n * r + c] -= h * damping.entry(m, d, i, j);
        if (i != j) block->matrix[block->n * c + r] -= h * damping.entry(m, d, j, i);
      } else if (in_mass_matrix(m, tree, i, j)) {
        packed[packed_index(m, tree, i, j)] -= h * damping.entry(m, d, i, j);
      }
    }
  }
}

[[noreturn]] void throw_singular() {
  throw std::domain_error(
      "the inertia matrix is not positive definite: check masses, inertias, armature and damping");
}

Integration euler(const ModelView& m, const DataView& d, const Forward& f, Arena& arena) {
  if (!euler_is_damped(m)) return {true, f.acc, {d.qLD, d.qLDiagInv}, nullptr};
  double* packed = arena.take<double>(m.nC);
  double* inverse = arena.take<double>(m.nv);
  double* w = arena.take<double>(m.nv);
  std::memcpy(packed, d.M, m.nC * sizeof(double));
  for (int i = 0; i < m.nv; i++) {
    double slope = dof_damping(m, i).slope_odd(d.qvel[i]);
    packed[m.M_rowadr[i] + m.M_rownnz[i] - 1] += m.opt.timestep * slope;
    w[i] = f.force[i];
  }
  if (!factor_inertia(m, packed, inverse)) throw_singular();
  InertiaFactor factor{packed, inverse};
  solve_inertia(m, factor, w);
  return {false, w, factor, nullptr};
}

// M + h (dof damping) of one tree as a full matrix
TreeBlock* start_block(const ModelView& m, const DataView& d, const Topology& tree, int t,
                       Arena& arena) {
  TreeBlock* block = arena.take<TreeBlock>(1);
  const int dof = m.tree_dofadr[t], n = m.tree_dofnum[t];
  *block = {dof, n, arena.zeros<double>(n * n), arena.take<int>(n)};
  for (int r = 0; r < n; r++) {
    double* a = block->matrix;
    for (int c = 0; c <= r; c++) {
      if (!in_mass_matrix(m, tree, dof + r, dof + c)) continue;
      a[n * r + c] = a[n * c + r] = d.M[packed_index(m, tree, dof + r, dof + c)];
    }
    if (dampers_enabled(m)) {
      a[(n + 1) * r] += m.opt.timestep * dof_damping(m, dof + r).slope_odd(d.qvel[dof + r]);
    }
  }
  return block;
}

// Factor the blocks and solve them for w, which is the force on entry.
void solve_blocks(const ModelView& m, TreeBlock* const* blocks, double* w, Arena& arena) {
  for (int t = 0; t < m.ntree; t++) {
    if (!blocks[t]) continue;
    if (!factor_lu(blocks[t]->n, blocks[t]->matrix, blocks[t]->order, arena)) throw_singular();
    solve_lu(blocks[t]->n, blocks[t]->matrix, blocks[t]->order, w + blocks[t]->dof, 1, 0, 1, arena);
  }
}

Integration implicitfast(const ModelView& m, const DataView& d, const Forward& f, Arena& arena) {
  double* packed = arena.take<double>(m.nC);
  double* inverse = arena.take<double>(m.nv);
  double* w = arena.take<double>(m.nv);
  std::memcpy(packed, d.M, m.nC * sizeof(double));

  // free bodies keep M alone in the symmetric system and are solved by their own block, which has
  // the rate of their bias force
  TreeBlock** blocks = arena.zeros<TreeBlock*>(m.ntree);
  for (int t = 0; t < m.ntree; t++) {
    int body = free_body(m, t);
    if (body < 0) continue;
    blocks[t] = start_block(m, d, f.tree, t, arena);
    add_free_bias_rate(m, d, body, m.opt.timestep, blocks[t]->matrix);
  }
  for (int i = 0; i < m.nv; i++) {
    w[i] = f.force[i];
    if (!dampers_enabled(m) || blocks[m.dof_treeid[i]]) continue;
    double slope = dof_damping(m, i).slope_odd(d.qvel[i]);
    packed[m.M_rowadr[i] + m.M_rownnz[i] - 1] += m.opt.timestep * slope;
  }
  subtract_path_damping(m, f.tree, f.paths, packed, blocks);
  subtract_fluid_damping(m, d, f.tree, /*symmetric=*/true, packed, blocks, arena);
  if (!factor_inertia(m, packed, inverse)) throw_singular();
  InertiaFactor factor{packed, inverse};
  solve_inertia(m, factor, w);
  for (int i = 0; i < m.nv; i++) {
    if (blocks[m.dof_treeid[i]]) w[i] = f.force[i];
  }
  solve_blocks(m, blocks, w, arena);
  return {false, w, factor, blocks};
}

// The fully implicit integrator: every tree has a block, with the rate of its bias force  (INT-11)
Integration implicit(const ModelView& m, const DataView& d, const Forward& f, Arena& arena) {
  double* w = arena.take<double>(m.nv);
  TreeBlock** blocks = arena.take<TreeBlock*>(m.ntree);
  const Residual bias = make_like(m, f.residual, arena);
  inverse_dynamics_derivative(m, d, f.tree, f.acc, bias, arena);
  for (int t = 0; t < m.ntree; t++) {
    TreeBlock* b = blocks[t] = start_block(m, d, f.tree, t, arena);
    for (int r = 0; r < b->n; r++)
      for (int c = 0; c < b->n; c++) {
        if (!f.tree.is_related(b->dof + r, b->dof + c)) continue;
        b->matrix[b->n * r + c] -= m.opt.timestep * bias.dv(b->dof + r, b->dof + c);
      }
  }
  subtract_path_damping(m, f.tree, f.paths, nullptr, blocks);
  subtract_fluid_damping(m, d, f.tree, /*symmetric=*/false, nullptr, blocks, arena);
  std::memcpy(w, f.force, m.nv * sizeof(double));
  solve_blocks(m, blocks, w, arena);
  return {false, w, {}, blocks};
}

// Subtract h d((dc/dv) w) by the bilinear identity: c is quadratic in v, so            (INT-12)
//   (dc/dv) s w = (c(v + s w) - c(v - s w)) / 2,
// and the same holds for its derivatives. s makes the two velocities of one size.
void subtract_bias_change(const ModelView& m, const DataView& d, const Forward& f, const double* w,
                          const Residual& residual, Arena& arena) {
  double speed = 0, size = 0;
  for (int i = 0; i < m.nv; i++) {
    speed = std::fmax(speed, std::abs(d.qvel[i]));
    size = std::fmax(size, std::abs(w[i]));
  }
  if (size == 0) return;
  const double s = (speed > 0 ? speed : 1) / size;
  ModelView weightless = m;
  weightless.opt.disableflags |= disable::kGravity;
  const double* still = arena.zeros<double>(m.nv);
  for (double sign : {1.0, -1.0}) {
    double* velocity = arena.take<double>(m.nv);
    for (int i = 0; i < m.nv; i++) velocity[i] = d.qvel[i] + sign * s * w[i];
    const Residual bias = make_like(m, residual, arena);
    inverse_dynamics_derivative(weightless, at_velocity(m, d, velocity, arena), f.tree, still, bias,
                                arena);
    const double scale = sign * m.opt.timestep / (2 * s);
    for (int c = 0; c < residual.count; c++) {
      const Component& part = residual.components[c];
      for (int i = 0; i < part.nv; i++) {
        double *to = residual.row[part.dofs[i]], *from = bias.row[part.dofs[i]];
        for (int k = 0; k < 2 * part.nv; k++) to[k] += scale * from[k];
      }
    }
  }
}

// h d(D w) of one path force, D w = sum_ij m_i b m_j w_j over the pattern of D            (INT-5)
void add_path_damping_change(const ModelView& m, const DataView& d, const Topology& tree,
                             const Integration& step, const PathForce& f, const Residual& residual,
                             Arena& arena) {
  const Path& p = f.path;
  const double* w = step.w;
  const double h = m.opt.timestep;
  double* rate = arena.take<double>(p.n);
  double* turned = arena.take<double>(p.n);
  path_rate_derivative(p, d.qvel, rate);
  for (int a = 0; a < p.n; a++) {
    int i = p.dofs[a];
    double s = 0;  // sum_j m_j w_j
    for (int k = 0; k < p.n; k++) turned[k] = 0;
    for (int b = 0; b < p.n; b++) {
      int j = p.dofs[b];
      if (!in_damping(m, tree, step, i, j)) continue;
      s += p.moment[b] * w[j];
      if (!p.hessian) continue;
      for (int k = 0; k < p.n; k++) turned[k] += p.hessian[b * p.n + k] * w[j];
    }
    for (int k = 0; k < p.n; k++) {
      double slope = f.damping_dlength * p.dlength[k] + f.damping_drate * rate[k];
      double change = p.moment[a] * (f.damping * turned[k] + s * slope);
      if (p.hessian) change += p.hessian[a * p.n + k] * f.damping * s;
      residual.dq(i, p.dofs[k]) += h * change;
      residual.dv(i, p.dofs[k]) += h * p.moment[a] * s * f.damping_drate * p.moment[k];
    }
    for (int k = 0; k < f.input_count; k++) {
      residual.du(i, f.inputs[k].input) += h * p.moment[a] * s * f.inputs[k].damping;
    }
  }
}

bool damping_is_constant(const PathForce& f) {
  if (f.path.hessian && f.damping != 0) return false;
  if (f.damping_dlength != 0 || f.damping_drate != 0) return false;
  for (int k = 0; k < f.input_count; k++) {
    if (f.inputs[k].damping != 0) return false;
  }
  return true;
}

}  // namespace

Integration integrate(const ModelView& m, const DataView& d, const Forward& f, Arena& arena) {
  const int type = m.opt.integrator;
  Integration step = type == integrator::kEuler      ? euler(m, d, f, arena)
                     : type == integrator::kImplicit ? implicit(m, d, f, arena)
                                                     : implicitfast(m, d, f, arena);
  for (int i = 0; i < m.nv; i++) {
    if (!(std::abs(step.w[i]) <= kMaxVal)) {
      throw std::domain_error("the acceleration of dof " + std::to_string(i) + " is " +
                              std::to_string(step.w[i]) +
                              ": the simulation has diverged, and mj_step would reset it");
    }
  }
  return step;
}

void add_damping_change(const ModelView& m, const DataView& d, const Forward& f,
                        const Integration& step, const Residual& residual, Arena& arena) {
  bool euler = m.opt.integrator == integrator::kEuler;
  if (euler ? euler_is_damped(m) : dampers_enabled(m)) {
    for (int i = 0; i < m.nv; i++) {
      double curvature = dof_damping(m, i).curvature_odd(d.qvel[i]);
      residual.dv(i, i) -= m.opt.timestep * curvature * step.w[i];
    }
  }
  if (euler) return;
  visit_damping(f.paths, [&](const PathForce& force) {
    if (damping_is_constant(force)) return;
    add_path_damping_change(m, d, f.tree, step, force, residual, arena);
  });
  const bool fully = m.opt.integrator == integrator::kImplicit;
  add_fluid_damping_change(m, d, /*symmetric=*/!fully, /*full_pattern=*/fully, step.w,
                           m.opt.timestep, residual, arena);
  if (fully) return subtract_bias_change(m, d, f, step.w, residual, arena);
  for (int t = 0; t < m.ntree; t++) {
    if (!step.block[t]) continue;
    int dof = step.block[t]->dof;
    subtract_free_bias_change(m, d, m.dof_bodyid[dof], m.opt.timestep, step.w + dof, residual);
  }
}

}  // namespace mujacobian

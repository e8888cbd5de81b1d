#include "step/integrator.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "dynamics/convergence.h"
#include "dynamics/free_body.h"
#include "forces/fluid.h"
#include "forces/passive.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/text.h"
#include "linear/lu.h"
#include "tree/inverse_dynamics.h"
#include "tree/velocity.h"

namespace mujacobian {

bool euler_is_damped(const ModelView& m, bool inverse) {
  if (m.opt.disableflags & disable::kEulerDamp) return false;
  if (!dampers_enabled(m) && !(inverse && engine().version < kMuJoCo400)) return false;
  for (int i = 0; i < m.nv; i++) {
    const double* p = m.dof_dampingpoly + kNPoly * i;
    if (m.dof_damping[i] > 0 || p[0] != 0 || p[1] != 0) return true;
    if (m.jnt_actuatorid[m.dof_jntid[i]] != -1) return true;
  }
  return false;
}

bool in_damping(const ModelView& m, const Topology& tree, TreeBlock* const* blocks, int i, int j) {
  return blocks[m.dof_treeid[i]] ? tree.is_related(i, j) : in_mass_matrix(m, tree, i, j);
}

namespace {

// Subtracts h D of the path forces from the packed matrix, or from the block of the tree.
void subtract_path_damping(const ModelView& m, const Topology& tree, const PathForces& paths,
                           double* packed, TreeBlock* const* blocks) {
  paths.visit([&](const PathForce& f) {
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

// Subtracts h D of the medium in the same way.
void subtract_fluid_damping(const ModelView& m, const DataView& d, const Topology& tree,
                            FluidPart part, double* packed, TreeBlock* const* blocks,
                            Arena& arena) {
  const FluidDamping damping = fluid_damping(m, d, part, arena);
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

// Returns a copy of M.
double* copy_inertia(const ModelView& m, const DataView& d, Arena& arena) {
  double* packed = arena.take<double>(m.nC);
  std::memcpy(packed, d.M, m.nC * sizeof(double));
  return packed;
}

void add_dof_damping(const ModelView& m, const DataView& d, int dof, double* packed) {
  double slope = dof_damping(m, dof).slope_odd(d.qvel[dof]);
  packed[m.M_rowadr[dof] + m.M_rownnz[dof] - 1] += m.opt.timestep * slope;
}

// Euler: M + h (dof damping), or M.
StepMatrix euler(const ModelView& m, const DataView& d, bool inverse, Arena& arena) {
  if (!euler_is_damped(m, inverse)) return {nullptr, nullptr};
  double* packed = copy_inertia(m, d, arena);
  for (int i = 0; i < m.nv; i++) add_dof_damping(m, d, i, packed);
  return {packed, nullptr};
}

// Returns M + h (dof damping) of one tree as a dense block.
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

// implicitfast: symmetric, except for free bodies.
StepMatrix implicitfast(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                        Arena& arena) {
  double* packed = copy_inertia(m, d, arena);

  // free bodies have blocks of their own with the derivative of their bias force; the symmetric
  // system contains only M for them
  TreeBlock** blocks = arena.zeros<TreeBlock*>(m.ntree);
  for (int t = 0; t < m.ntree; t++) {
    int body = free_body(m, t);
    if (body < 0) continue;
    blocks[t] = start_block(m, d, f.tree, t, arena);
    add_free_bias_rate(m, d, body, m.opt.timestep, blocks[t]->matrix);
  }

  // damping of dofs, paths and the medium
  for (int i = 0; i < m.nv && dampers_enabled(m); i++) {
    if (!blocks[m.dof_treeid[i]]) add_dof_damping(m, d, i, packed);
  }
  subtract_path_damping(m, f.tree, f.paths, packed, blocks);
  subtract_fluid_damping(m, d, f.tree, FluidPart::kSymmetric, packed, blocks, arena);
  return {packed, blocks};
}

// implicit: every tree has a block with the derivative of its bias force.                (INT-11)
StepMatrix implicit(const ModelView& m, const DataView& d, const ForwardDynamics& f, Arena& arena) {
  TreeBlock** blocks = arena.take<TreeBlock*>(m.ntree);
  const DofRows bias = make_like(m, f.residual, arena);
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
  subtract_fluid_damping(m, d, f.tree, FluidPart::kAll, nullptr, blocks, arena);
  return {nullptr, blocks};
}

// Factors the matrix in place.
Integration factor_step(const ModelView& m, const StepMatrix& matrix, Arena& arena) {
  Integration step{false, nullptr, {}, matrix.block};
  if (matrix.packed) {
    double* inverse = arena.take<double>(m.nv);
    if (!factor_inertia(m, matrix.packed, inverse)) throw_singular();
    step.factor = {matrix.packed, inverse};
  }
  for (int t = 0; matrix.block && t < m.ntree; t++) {
    TreeBlock* b = matrix.block[t];
    if (b && !factor_lu(b->n, b->matrix, b->order, arena)) throw_singular();
  }
  return step;
}

// w <- (M + h Dhat)^-1 force for the trees that have blocks.
void accelerate_blocks(const ModelView& m, const Integration& step, const double* force, double* w,
                       Arena& arena) {
  for (int t = 0; step.block && t < m.ntree; t++) {
    const TreeBlock* b = step.block[t];
    if (!b) continue;
    for (int i = b->dof; i < b->dof + b->n; i++) w[i] = force[i];
    solve_lu(b->n, b->matrix, b->order, w + b->dof, 1, 0, 1, arena);
  }
}

// Returns (M + h Dhat)^-1 force.
const double* accelerate(const ModelView& m, const Integration& step, const double* force,
                         Arena& arena) {
  double* w = arena.take<double>(m.nv);
  std::memcpy(w, force, m.nv * sizeof(double));
  if (step.factor.packed) solve_inertia(m, step.factor, w);
  accelerate_blocks(m, step, force, w, arena);
  return w;
}

// Returns MuJoCo's own constraint forces plus qfrc_smooth.
double* given_force(const ModelView& m, const DataView& d, Arena& arena) {
  double* force = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) force[i] = d.qfrc_smooth[i] + d.qfrc_constraint[i];
  return force;
}

// Sets step.w and step.given. The two solutions take little more time than one.
void accelerate_twice(const ModelView& m, const DataView& d, const double* force, Integration& step,
                      Arena& arena) {
  const double* given = given_force(m, d, arena);
  double* both = arena.take<double>(2 * m.nv);
  for (int i = 0; i < m.nv; i++) both[2 * i] = force[i], both[2 * i + 1] = given[i];
  if (step.factor.packed) solve_inertia_twice(m, step.factor, both);
  double *w = arena.take<double>(m.nv), *w_given = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) w[i] = both[2 * i], w_given[i] = both[2 * i + 1];
  accelerate_blocks(m, step, force, w, arena);
  accelerate_blocks(m, step, given, w_given, arena);
  step.w = w, step.given = w_given;
}

// Adds h d(D w) of one path force, with D w = sum_ij m_i b m_j w_j over the pattern of D.  (INT-5)
void add_path_damping_change(const ModelView& m, const DataView& d, const Topology& tree,
                             TreeBlock* const* blocks, const double* w, const PathForce& f,
                             const DofRows& residual, Arena& arena) {
  const Path& p = f.path;
  const double h = m.opt.timestep;
  double* rate = arena.take<double>(p.n);
  double* ds = arena.take<double>(p.n);  // sum_j dm_j/dq w_j
  path_rate_derivative(p, d.qvel, rate);
  for (int a = 0; a < p.n; a++) {
    // row i, over the dofs j of its pattern
    int i = p.dofs[a];
    double s = 0;  // sum_j m_j w_j
    for (int k = 0; k < p.n; k++) ds[k] = 0;
    for (int b = 0; b < p.n; b++) {
      int j = p.dofs[b];
      if (!in_damping(m, tree, blocks, i, j)) continue;
      s += p.moment[b] * w[j];
      if (!p.hessian) continue;
      for (int k = 0; k < p.n; k++) ds[k] += p.hessian[b * p.n + k] * w[j];
    }
    // d(m_i b s)
    for (int k = 0; k < p.n; k++) {
      double slope = f.damping_dlength * p.dlength[k] + f.damping_drate * rate[k];
      double change = p.moment[a] * (f.damping * ds[k] + s * slope);
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

StepMatrix step_matrix(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                       bool inverse, Arena& arena) {
  switch (m.opt.integrator) {
    case integrator::kEuler:
      return euler(m, d, inverse, arena);
    case integrator::kImplicit:
      return implicit(m, d, f, arena);
    default:
      return implicitfast(m, d, f, arena);
  }
}

Integration integrate(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                      Arena& arena) {
  // w is the constrained acceleration, unless the integrator has a matrix of its own
  StepMatrix matrix{};
  if (!has_metric(m)) matrix = step_matrix(m, d, f, /*inverse=*/false, arena);
  Integration step{true, f.acc, {d.qLD, d.qLDiagInv}, nullptr};
  if (!matrix.is_inertia()) {
    step = factor_step(m, matrix, arena);
    if (f.blocks.count) {
      accelerate_twice(m, d, f.force, step, arena);
    } else {
      step.w = accelerate(m, step, f.force, arena);
    }
  }
  for (int i = 0; i < m.nv; i++) {
    if (!(std::abs(step.w[i]) <= kMaxVal)) {
      throw std::domain_error("the acceleration of dof " + std::to_string(i) + " is " +
                              in_words(step.w[i]) +
                              ": the simulation has diverged, and mj_step would reset it");
    }
  }
  return step;
}

double solver_error(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                    const Integration& step, Arena& arena) {
  if (!step.given) return f.solver_error;
  const bool unsolved = is_unsolved(d);
  auto measure = [&](const double* optimum) {
    const double *given = step.given, *w = step.w;
    // the solver has run in the meantime
    if (is_unsolved(d) != unsolved) given = accelerate(m, step, given_force(m, d, arena), arena);
    if (optimum) {
      double* exact = arena.zeros<double>(m.nv);
      multiply_inertia(m, d, optimum, exact);
      w = accelerate(m, step, exact, arena);
    }
    return acceleration_distance(m, d, f, given, w);
  };
  return std::fmax(f.solver_error, solver_share(m, d, f, measure, arena));
}

double bias_scale(const ModelView& m, const DataView& d, const double* w) {
  double speed = 0, size = 0;
  for (int i = 0; i < m.nv; i++) {
    speed = std::fmax(speed, std::abs(d.qvel[i]));
    size = std::fmax(size, std::abs(w[i]));
  }
  return size == 0 ? 0 : (speed > 0 ? speed : 1) / size;
}

// Uses the bilinear identity: c is quadratic in v, so                                  (INT-12)
//   (dc/dv) s w = (c(v + s w) - c(v - s w)) / 2,
// and the same is true for its derivatives. The scale s makes v and s w equally large.
void subtract_bias_change(const ModelView& m, const DataView& d, const Topology& tree,
                          const double* w, const DofRows& residual, Arena& arena) {
  const double s = bias_scale(m, d, w);
  if (s == 0) return;
  ModelView weightless = m;
  weightless.opt.disableflags |= disable::kGravity;

  // the two velocities
  const double* still = arena.zeros<double>(m.nv);
  for (double sign : {1.0, -1.0}) {
    double* velocity = arena.take<double>(m.nv);
    for (int i = 0; i < m.nv; i++) velocity[i] = d.qvel[i] + sign * s * w[i];
    const DofRows bias = make_like(m, residual, arena);
    inverse_dynamics_derivative(weightless, at_velocity(m, d, velocity, arena), tree, still, bias,
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

void subtract_damping_change(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             TreeBlock* const* blocks, const double* w, bool inverse,
                             const DofRows& residual, Arena& arena) {
  if (has_metric(m)) return;
  // dofs
  const double h = m.opt.timestep;
  const bool euler = m.opt.integrator == integrator::kEuler;
  if (euler ? euler_is_damped(m, inverse) : dampers_enabled(m)) {
    for (int i = 0; i < m.nv; i++) {
      residual.dv(i, i) -= h * dof_damping(m, i).curvature_odd(d.qvel[i]) * w[i];
    }
  }
  if (euler) return;

  // paths and the medium
  f.paths.visit([&](const PathForce& force) {
    if (damping_is_constant(force)) return;
    add_path_damping_change(m, d, f.tree, blocks, w, force, residual, arena);
  });
  const bool fully = m.opt.integrator == integrator::kImplicit;
  add_fluid_damping_change(m, d, fully ? FluidPart::kAll : FluidPart::kSymmetric,
                           /*full_pattern=*/fully, w, h, residual, arena);

  // bias force: of all trees, or of free bodies
  if (fully) return subtract_bias_change(m, d, f.tree, w, residual, arena);
  for (int t = 0; t < m.ntree; t++) {
    if (!blocks[t]) continue;
    int dof = blocks[t]->dof;
    subtract_free_bias_change(m, d, m.dof_bodyid[dof], h, w + dof, residual);
  }
}

}  // namespace mujacobian

#include "step/integrator.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "layout/enums.h"
#include "smooth/passive.h"
#include "smooth/tendon.h"
#include "step/free_body.h"

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

// The integrator's D has the entry (i, j): the pattern of M, except that the blocks of free bodies
// are full.
bool in_damping(const ModelView& m, const Topology& tree, int i, int j) {
  if (in_mass_matrix(m, tree, i, j)) return true;
  return m.dof_treeid[i] == m.dof_treeid[j] && free_body(m, m.dof_treeid[i]) >= 0;
}

template <class F>
void visit_damping(const PathForces& paths, F visit) {
  for (int k = 0; k < paths.tendon_count; k++) visit(paths.tendon[k]);
  for (int k = 0; k < paths.actuation.count; k++) visit(paths.actuation.forces[k]);
}

// Subtract h D of the path forces from the packed matrix, or from the block of a free body.
void subtract_path_damping(const ModelView& m, const Topology& tree, const PathForces& paths,
                           double* packed, FreeBlock* const* free) {
  visit_damping(paths, [&](const PathForce& f) {
    if (f.damping == 0) return;
    const Path& p = f.path;
    for (int a = 0; a < p.n; a++) {
      for (int b = 0; b < p.n; b++) {
        int i = p.dofs[a], j = p.dofs[b];
        double value = m.opt.timestep * f.damping * p.moment[a] * p.moment[b];
        if (FreeBlock* block = free[m.dof_treeid[i]]) {
          if (m.dof_treeid[i] != m.dof_treeid[j]) continue;
          block->matrix[6 * (i - block->dof) + j - block->dof] -= value;
        } else if (j <= i && in_mass_matrix(m, tree, i, j)) {
          packed[packed_index(m, tree, i, j)] -= value;
        }
      }
    }
  });
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

// M + h (dof damping) + h d(bias)/dv of a free body
void start_free_block(const ModelView& m, const DataView& d, const Topology& tree,
                      FreeBlock& block) {
  const double h = m.opt.timestep;
  const int dof = block.dof;
  double* a = block.matrix;
  for (int r = 0; r < 6; r++) {
    for (int c = 0; c <= r; c++) {
      bool stored = in_mass_matrix(m, tree, dof + r, dof + c);
      double value = stored ? d.M[packed_index(m, tree, dof + r, dof + c)] : 0;
      a[6 * r + c] = a[6 * c + r] = value;
    }
    if (dampers_enabled(m)) a[7 * r] += h * dof_damping(m, dof + r).slope_odd(d.qvel[dof + r]);
  }
  add_free_bias_rate(m, d, m.dof_bodyid[dof], h, a);
}

Integration implicitfast(const ModelView& m, const DataView& d, const Forward& f, Arena& arena) {
  double* packed = arena.take<double>(m.nC);
  double* inverse = arena.take<double>(m.nv);
  double* w = arena.take<double>(m.nv);
  FreeBlock** free = arena.zeros<FreeBlock*>(m.ntree);
  std::memcpy(packed, d.M, m.nC * sizeof(double));
  for (int t = 0; t < m.ntree; t++) {
    if (free_body(m, t) < 0) continue;
    free[t] = arena.take<FreeBlock>(1);
    free[t]->dof = m.tree_dofadr[t];
    start_free_block(m, d, f.tree, *free[t]);
  }

  // free bodies keep M alone in the symmetric system and are solved by their own block
  for (int i = 0; i < m.nv; i++) {
    w[i] = f.force[i];
    if (!dampers_enabled(m) || free[m.dof_treeid[i]]) continue;
    double slope = dof_damping(m, i).slope_odd(d.qvel[i]);
    packed[m.M_rowadr[i] + m.M_rownnz[i] - 1] += m.opt.timestep * slope;
  }
  subtract_path_damping(m, f.tree, f.paths, packed, free);
  if (!factor_inertia(m, packed, inverse)) throw_singular();
  InertiaFactor factor{packed, inverse};
  solve_inertia(m, factor, w);
  for (int t = 0; t < m.ntree; t++) {
    if (!free[t]) continue;
    if (!invert6(free[t]->matrix, free[t]->inverse)) throw_singular();
    multiply6(free[t]->inverse, f.force + free[t]->dof, w + free[t]->dof);
  }
  return {false, w, factor, free};
}

// h d(D w) of one path force, D w = sum_ij m_i b m_j w_j over the pattern of D            (INT-5)
void add_path_damping_change(const ModelView& m, const DataView& d, const Topology& tree,
                             const PathForce& f, const double* w, const Residual& residual,
                             Arena& arena) {
  const Path& p = f.path;
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
      if (!in_damping(m, tree, i, j)) continue;
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

int free_body(const ModelView& m, int tree) {
  if (m.tree_dofnum[tree] != 6) return -1;
  int dof = m.tree_dofadr[tree];
  return m.jnt_type[m.dof_jntid[dof]] == joint::kFree ? m.dof_bodyid[dof] : -1;
}

Integration integrate(const ModelView& m, const DataView& d, const Forward& f, Arena& arena) {
  Integration step =
      m.opt.integrator == integrator::kEuler ? euler(m, d, f, arena) : implicitfast(m, d, f, arena);
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
  bool fast = m.opt.integrator == integrator::kImplicitFast;
  if (fast ? dampers_enabled(m) : euler_is_damped(m)) {
    for (int i = 0; i < m.nv; i++) {
      double curvature = dof_damping(m, i).curvature_odd(d.qvel[i]);
      residual.dv(i, i) -= m.opt.timestep * curvature * step.w[i];
    }
  }
  if (!fast) return;
  visit_damping(f.paths, [&](const PathForce& force) {
    if (damping_is_constant(force)) return;
    add_path_damping_change(m, d, f.tree, force, step.w, residual, arena);
  });
  for (int t = 0; t < m.ntree; t++) {
    if (!step.free[t]) continue;
    int dof = step.free[t]->dof;
    subtract_free_bias_change(m, d, m.dof_bodyid[dof], m.opt.timestep, step.w + dof, residual);
  }
}

}  // namespace mujacobian

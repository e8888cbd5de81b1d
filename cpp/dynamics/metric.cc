#include "dynamics/metric.h"

#include <cstring>
#include <stdexcept>

#include "dynamics/free_body.h"
#include "forces/fluid.h"
#include "forces/passive.h"
#include "layout/enums.h"
#include "linear/lu.h"
#include "tree/inertia.h"

namespace mujacobian {
namespace {

// The stiffness k and damping b of a path force in the metric, which contains only those of the
// stabilizing sign, and their derivatives.                                                (DIS-2)
struct Gains {
  double k, k_dlength, k_drate;
  double b, b_dlength, b_drate;

  double weight(double h) const { return h * h * k + h * b; }
  // its derivatives with respect to the length and the rate
  double weight_dlength(double h) const { return h * h * k_dlength + h * b_dlength; }
  double weight_drate(double h) const { return h * h * k_drate + h * b_drate; }
};

Gains gains(const PathForce& f) {
  Gains g{};
  if (f.stiffness < 0)
    g.k = -f.stiffness, g.k_dlength = -f.stiffness_dlength, g.k_drate = -f.stiffness_drate;
  // tie: sign of a slope in the metric
  if (f.damping < 0)
    g.b = -f.damping, g.b_dlength = -f.damping_dlength, g.b_drate = -f.damping_drate;
  return g;
}

// Derivatives of k and b with respect to one of the inputs.
struct InputGains {
  double k, b;
};
InputGains input_gains(const PathForce& f, const InputSlope& input) {
  return {f.stiffness < 0 ? -input.stiffness : 0, f.damping < 0 ? -input.damping : 0};
}

// Returns the force -(s (m a) + h k (m v)) that the metric adds along a path.             (DIS-4)
PathForce metric_force(const PathForce& f, double h, const double* acc, const double* qvel,
                       Arena& arena) {
  const Gains g = gains(f);
  double along = 0, rate = 0;  // m a, m v
  for (int i = 0; i < f.path.n; i++) {
    along += f.path.moment[i] * acc[f.path.dofs[i]];
    rate += f.path.moment[i] * qvel[f.path.dofs[i]];
  }
  const double ahead = h * along + rate;  // m v at the end of the step

  // the force and its derivatives
  PathForce added{};
  added.path = f.path;
  added.force = -h * (g.k * ahead + g.b * along);
  added.dlength = -h * (g.k_dlength * ahead + g.b_dlength * along);
  added.drate = -h * (g.k_drate * ahead + g.b_drate * along + g.k);
  added.inputs = arena.take<InputSlope>(f.input_count);
  added.input_count = f.input_count;
  for (int k = 0; k < f.input_count; k++) {
    const InputGains d = input_gains(f, f.inputs[k]);
    added.inputs[k] = {f.inputs[k].input, -h * (d.k * ahead + d.b * along), 0, 0};
  }
  return added;
}

// Computes M + h D + h^2 K without the terms that couple dofs, and the force tau - h K v.
void start_problem(const ModelView& m, const DataView& d, double* packed, double* smooth) {
  std::memcpy(packed, d.M, m.nC * sizeof(double));
  for (int k = 0; d.efm_fluid && k < m.nC; k++) packed[k] += d.efm_fluid[k];
  for (int i = 0; i < m.nv; i++) {
    if (d.efm_diag) packed[m.M_rowadr[i] + m.M_rownnz[i] - 1] += d.efm_diag[i];
    smooth[i] = d.qfrc_smooth[i] + d.efm_c[i] + (d.efm_ca ? d.efm_ca[i] : 0);
  }
}

// Appends a term weight m^T m as a block.
Block* append_term(const Path& path, double weight, Blocks& blocks, Arena& arena) {
  Block* b = blocks.block + blocks.count++;
  *b = {};
  b->type = kMetricTerm;
  b->idle = false;
  b->row = -1;
  b->count = b->edges = 1;
  b->weight = weight;
  take_jacobian(*b, path.n, path.dofs, arena);
  std::memcpy(b->J, path.moment, path.n * sizeof(double));
  return b;
}

// Marks the trees that have constraint rows or paths of the metric.
bool* coupled_trees(const ModelView& m, const PathForces& paths, const Blocks& rows, Arena& arena) {
  bool* coupled = arena.zeros<bool>(m.ntree);
  auto mark = [&](const int* dofs, int n) {
    for (int i = 0; i < n; i++) coupled[m.dof_treeid[dofs[i]]] = true;
  };
  for (int k = 0; k < rows.count; k++) mark(rows.block[k].dofs, rows.block[k].n);
  paths.visit([&](const PathForce& f) {
    if (gains(f).weight(m.opt.timestep) != 0) mark(f.path.dofs, f.path.n);
  });
  return coupled;
}

// Returns the factored block of a free body without couplings, which contains the derivative of its
// bias force, as in implicitfast. The constraint problem is symmetric and cannot contain this
// block, so its force is set such that MuJoCo's acceleration of the body solves it.     (DIS-10)
TreeBlock* free_block(const ModelView& m, const DataView& d, int body, const double* packed,
                      double* smooth, Arena& arena) {
  TreeBlock* b = arena.take<TreeBlock>(1);
  const int dof = m.body_dofadr[body];
  *b = {dof, 6, arena.zeros<double>(36), arena.take<int>(6)};
  for (int r = 0; r < 6; r++) {
    for (int p = m.M_rowadr[dof + r], last = p + m.M_rownnz[dof + r]; p < last; p++) {
      int c = m.M_colind[p] - dof;
      b->matrix[6 * r + c] = b->matrix[6 * c + r] = packed[p];
    }
  }
  // Mh qacc
  for (int r = 0; r < 6; r++) {
    smooth[dof + r] = 0;
    for (int c = 0; c < 6; c++) smooth[dof + r] += b->matrix[6 * r + c] * d.qacc[dof + c];
  }
  add_free_bias_rate(m, d, body, m.opt.timestep, b->matrix);
  if (!factor_lu(6, b->matrix, b->order, arena)) {
    throw std::domain_error("the metric of a free body is singular: check masses and inertias");
  }
  return b;
}

}  // namespace

bool has_metric(const ModelView& m) { return m.opt.integrator == integrator::kDiscrete; }

StepMetric make_metric(const ModelView& m, const DataView& d, const PathForces& paths,
                       const Blocks& rows, Arena& arena) {
  const double h = m.opt.timestep;
  double* packed = arena.take<double>(m.nC);
  double* smooth = arena.take<double>(m.nv);
  start_problem(m, d, packed, smooth);

  // paths: a term on the diagonal for one dof, otherwise a block
  StepMetric metric{d, rows, nullptr};
  paths.visit([&](const PathForce& f) {
    const double weight = gains(f).weight(h);
    if (weight == 0 || f.path.n == 0) return;
    if (f.path.n > 1) {
      append_term(f.path, weight, metric.blocks, arena);
    } else {
      int i = f.path.dofs[0];
      packed[m.M_rowadr[i] + m.M_rownnz[i] - 1] += weight * f.path.moment[0] * f.path.moment[0];
    }
  });

  // free bodies without couplings
  const bool* coupled = coupled_trees(m, paths, rows, arena);
  TreeBlock** block = arena.zeros<TreeBlock*>(m.ntree);
  for (int t = 0; t < m.ntree; t++) {
    int body = free_body(m, t);
    if (body >= 0 && !coupled[t]) block[t] = free_block(m, d, body, packed, smooth, arena);
  }
  metric.problem.M = packed;
  metric.problem.qfrc_smooth = smooth;
  metric.block = block;
  return metric;
}

void subtract_metric_change(const ModelView& m, const DataView& d, const PathForces& paths,
                            const StepMetric& metric, const double* acc, const DofRows& residual,
                            Arena& arena) {
  const double h = m.opt.timestep;

  // joint damping: h d(D) a
  for (int i = 0; dampers_enabled(m) && i < m.nv; i++) {
    const Poly damping = dof_damping(m, i);
    // tie: sign of joint damping in the metric
    if (damping.slope_odd(d.qvel[i]) <= 0) continue;
    residual.dv(i, i) -= h * damping.curvature_odd(d.qvel[i]) * acc[i];
  }
  // joint springs: h d(K (h a + v))
  for (int j = 0; springs_enabled(m) && j < m.njnt; j++) {
    SpringSlope spring[2];
    for (int s = 0, count = spring_slopes(m, d, j, spring); s < count; s++) {
      const int dof = spring[s].dof;
      for (int i = 0; i < spring[s].n; i++) {
        residual.dv(dof + i, dof + i) -= h * spring[s].stiffness;
        double ahead = h * (h * acc[dof + i] + d.qvel[dof + i]);
        for (int k = 0; k < spring[s].n; k++) {
          residual.dq(dof + i, dof + k) -= ahead * spring[s].gradient[k];
        }
      }
    }
  }
  // paths: the force at fixed m a, then the change of m a
  paths.visit([&](const PathForce& f) {
    const Path& p = f.path;
    const double weight = gains(f).weight(h);
    add_path_force(metric_force(f, h, acc, d.qvel, arena), d.qvel, nullptr, residual, arena);
    if (!p.hessian || weight == 0) return;
    double* along = arena.take<double>(p.n);  // d(m a)/dq
    path_rate_derivative(p, acc, along);
    for (int i = 0; i < p.n; i++)
      for (int k = 0; k < p.n; k++) {
        residual.dq(p.dofs[i], p.dofs[k]) -= weight * p.moment[i] * along[k];
      }
  });
  // fluid drag, and the bias force of free bodies
  add_fluid_damping_change(m, d, FluidPart::kDrag, /*full_pattern=*/false, acc, h, residual, arena);
  for (int t = 0; t < m.ntree; t++) {
    if (!metric.block[t]) continue;
    int dof = metric.block[t]->dof;
    subtract_free_bias_change(m, d, m.dof_bodyid[dof], h, acc + dof, residual);
  }
}

void add_metric_diagonal_change(const ModelView& m, const DataView& d, const PathForces& paths,
                                const DofRows& residual, Arena& arena) {
  const double h = m.opt.timestep;

  // joint damping
  for (int i = 0; dampers_enabled(m) && i < m.nv; i++) {
    const Poly damping = dof_damping(m, i);
    if (damping.slope_odd(d.qvel[i]) <= 0) continue;
    residual.dv(i, i) += h * damping.curvature_odd(d.qvel[i]);
  }
  // joint springs
  for (int j = 0; springs_enabled(m) && j < m.njnt; j++) {
    SpringSlope spring[2];
    for (int s = 0, count = spring_slopes(m, d, j, spring); s < count; s++)
      for (int i = 0; i < spring[s].n; i++)
        for (int k = 0; k < spring[s].n; k++) {
          residual.dq(spring[s].dof + i, spring[s].dof + k) += h * h * spring[s].gradient[k];
        }
  }
  // paths: the diagonal entry is weight m_i^2
  paths.visit([&](const PathForce& f) {
    const Path& p = f.path;
    const Gains g = gains(f);
    double* rate = arena.take<double>(p.n);
    path_rate_derivative(p, d.qvel, rate);
    for (int a = 0; a < p.n; a++) {
      const int i = p.dofs[a];
      const double square = p.moment[a] * p.moment[a];
      for (int k = 0; k < p.n; k++) {
        double dsquare = p.hessian ? 2 * p.moment[a] * p.hessian[a * p.n + k] : 0;
        residual.dq(i, p.dofs[k]) +=
            square * (g.weight_dlength(h) * p.dlength[k] + g.weight_drate(h) * rate[k]) +
            g.weight(h) * dsquare;
        residual.dv(i, p.dofs[k]) += square * g.weight_drate(h) * p.moment[k];
      }
      for (int k = 0; k < f.input_count; k++) {
        const InputGains slope = input_gains(f, f.inputs[k]);
        residual.du(i, f.inputs[k].input) += square * h * (h * slope.k + slope.b);
      }
    }
  });
  add_fluid_diagonal_change(m, d, FluidPart::kDrag, -h, residual, arena);
}

}  // namespace mujacobian

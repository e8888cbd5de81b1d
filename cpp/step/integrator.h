// The linear system of one step. The acceleration w that MuJoCo integrates is the solution of
//   (M + h Dhat) w = force,   v+ = v + h w.
// Its derivative is the solution of (M + h Dhat) dw = -dg(w). docs/derivations/integrators.md.
#pragma once

#include "dynamics/forward.h"
#include "tree/inertia.h"

namespace mujacobian {

// The matrix M + h Dhat.
struct StepMatrix {
  double* packed;     // with the pattern of M; null if all trees have blocks or the matrix is M
  TreeBlock** block;  // per tree: its block if it is not symmetric, or null; null: no blocks

  bool is_inertia() const { return !packed && !block; }
  double entry(const ModelView& m, const Topology& tree, int i, int j) const {
    int t = m.dof_treeid[i];
    if (t != m.dof_treeid[j]) return 0;
    if (const TreeBlock* b = block ? block[t] : nullptr) {
      return b->matrix[b->n * (i - b->dof) + j - b->dof];
    }
    if (!in_mass_matrix(m, tree, i, j)) return 0;
    return packed[i > j ? packed_index(m, tree, i, j) : packed_index(m, tree, j, i)];
  }
};

// Returns the matrix. `inverse`: as MuJoCo's inverse dynamics computes it.
StepMatrix step_matrix(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                       bool inverse, Arena& arena);

// The solution of the system, and its factored matrix.
struct Integration {
  bool explicit_;  // the matrix is M, and w is the constrained acceleration
  const double* w;
  InertiaFactor factor;
  TreeBlock* const* block;  // per tree: its factored block, or null if `factor` contains the tree

  // The w of MuJoCo's own constraint forces, for solver_error. Null if explicit or unconstrained.
  const double* given = nullptr;
};

// Returns the solution. Throws std::domain_error if the simulation has diverged.
Integration integrate(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                      Arena& arena);

// Returns the relative distance (SOL-3) of MuJoCo's acceleration from the optimum: the larger one
// of qacc and of the w that MuJoCo integrates. Stiff constraints hide an error of the constraint
// forces in qacc, but not in w.
double solver_error(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                    const Integration& step, Arena& arena);

// Returns whether Euler treats dof damping implicitly. It does unless no dof is damped or a flag
// disables it. Before 4.0 inverse dynamics does so even if dampers are disabled.
bool euler_is_damped(const ModelView& m, bool inverse);

// Returns whether Dhat of the implicit integrators has the entry (i, j). It has the pattern of M,
// and all pairs of dofs on one chain if the tree has a block of its own.
bool in_damping(const ModelView& m, const Topology& tree, TreeBlock* const* blocks, int i, int j);

// Returns the scale s at which v and s w are equally large, 0 if w is zero.              (INT-12)
double bias_scale(const ModelView& m, const DataView& d, const double* w);

// Subtracts h d((dc/dv) w) from the residual, where c is the bias force.
void subtract_bias_change(const ModelView& m, const DataView& d, const Topology& tree,
                          const double* w, const DofRows& residual, Arena& arena);

// Subtracts h d(Dhat) w, the change of the damping of the integrator, from the residual. The blocks
// are those of the step matrix, factored or not.
void subtract_damping_change(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             TreeBlock* const* blocks, const double* w, bool inverse,
                             const DofRows& residual, Arena& arena);

}  // namespace mujacobian

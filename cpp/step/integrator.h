// The linear system of one step: the acceleration w that MuJoCo integrates solves
//   (M + h Dhat) w = force,   v+ = v + h w,
// and its derivative solves (M + h Dhat) dw = -dg(w). docs/derivations/integrators.md.
#pragma once

#include "dynamics/forward.h"
#include "tree/inertia.h"

namespace mujacobian {

// M + h Dhat.
struct StepMatrix {
  double* packed;     // in the pattern of M; null where all trees have blocks, or it is M itself
  TreeBlock** block;  // by tree where it is not symmetric, else null; null: there are none

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

// `inverse`: as MuJoCo's inverse dynamics takes it.
StepMatrix step_matrix(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                       bool inverse, Arena& arena);

struct Integration {
  bool explicit_;  // w is the constrained acceleration itself
  const double* w;
  InertiaFactor factor;
  TreeBlock* const* block;  // factored, by tree, null where `factor` serves; null: there are none
};

Integration integrate(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                      Arena& arena);

// Relative distance (SOL-3) of MuJoCo's acceleration from the optimum: of qacc, and of the w that
// it integrates, in which an error of the constraint forces shows that stiff constraints hide in
// qacc.
double solver_error(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                    const Integration& step, Arena& arena);

// Euler treats dof damping implicitly unless nothing is damped or a flag forbids it. Until 4.0
// inverse dynamics does so even where dampers are disabled.
bool euler_is_damped(const ModelView& m, bool inverse);

// The implicit integrators' Dhat has the entry (i, j): the pattern of M, where a tree has a block
// of its own all pairs of dofs on one chain.
bool in_damping(const ModelView& m, const Topology& tree, TreeBlock* const* blocks, int i, int j);

// Subtract h d((dc/dv) w), c being the bias force, from the residual.
void subtract_bias_change(const ModelView& m, const DataView& d, const Topology& tree,
                          const double* w, const DofRows& residual, Arena& arena);

// Subtract h d(Dhat) w, the change of the integrator's own damping, from the residual. The blocks
// are those of the step's matrix, factored or not.
void subtract_damping_change(const ModelView& m, const DataView& d, const ForwardDynamics& f,
                             TreeBlock* const* blocks, const double* w, bool inverse,
                             const DofRows& residual, Arena& arena);

}  // namespace mujacobian

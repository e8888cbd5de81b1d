// The discrete integrator solves the constraint problem in the metric Mh, instead of M:
//   Mh = M + h D + h^2 K,   Mh a = tau - h K v + J^T f.
// D and K contain the dampers, springs and actuator gains that keep Mh positive definite. The
// acceleration is integrated directly: v+ = v + h a. docs/derivations/discrete.md.
#pragma once

#include "actuation/actuation.h"
#include "constraint/block.h"
#include "dynamics/tree_block.h"

namespace mujacobian {

// All forces along paths in this state.
struct PathForces {
  PathForce* tendon;
  int tendon_count;
  Actuation actuation;

  int count() const { return tendon_count + actuation.count; }
  template <class F>
  void visit(F f) const {
    for (int k = 0; k < tendon_count; k++) f(tendon[k]);
    for (int k = 0; k < actuation.count; k++) f(actuation.forces[k]);
  }
};

// The constraint problem in the metric.
struct StepMetric {
  DataView problem;  // with Mh and its force in place of M and qfrc_smooth, without the terms
  Blocks blocks;     // the constraint rows, then the terms s m^T m that couple dofs (DIS-3)
  TreeBlock* const* block;  // per tree: factored block of a free body without couplings, or null
};

// Returns whether the integrator is the discrete one.
bool has_metric(const ModelView& m);

// Returns the constraint problem in the metric. `rows` has room for one term per path behind its
// blocks.
StepMetric make_metric(const ModelView& m, const DataView& d, const PathForces& paths,
                       const Blocks& rows, Arena& arena);

// Subtracts d(Mh - M) a + d(h K v), the change of the metric at acceleration `acc`, from the
// residual.
void subtract_metric_change(const ModelView& m, const DataView& d, const PathForces& paths,
                            const StepMetric& metric, const double* acc, const DofRows& residual,
                            Arena& arena);

// Adds d((Mh - M)_jj) to row j of the residual, for every dof j.
void add_metric_diagonal_change(const ModelView& m, const DataView& d, const PathForces& paths,
                                const DofRows& residual, Arena& arena);

}  // namespace mujacobian

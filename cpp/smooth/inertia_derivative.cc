#include "smooth/inertia_derivative.h"

#include "layout/enums.h"
#include "smooth/tendon.h"
#include "smooth/velocity.h"

namespace mujacobian {

void inertia_derivative(const ModelView& m, const DataView& d, const Topology& tree,
                        const double* x, const Residual& residual, Arena& arena) {
  ModelView weightless = m;
  weightless.opt.disableflags |= disable::kGravity;
  const DataView resting = at_rest(m, d, arena);
  inverse_dynamics_derivative(weightless, resting, tree, x, residual, arena);
  add_tendon_armature(weightless, resting, tree, x, residual, arena);
}

}  // namespace mujacobian

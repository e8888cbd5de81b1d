#include "step/kept_step.h"

#include "contact/collider.h"
#include "layout/enums.h"

namespace mujacobian {

void KeptStep::transition(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena) {
  clear();
  if (m.opt.integrator == integrator::kRK4 || depends_on_tolerance(m, d)) {
    return mujacobian::transition(m, d, out, arena);
  }
  memory_.reset();
  d_ = copy_arrays(m, d, memory_);
  s_ = differentiate_step(m, d_, out.Bf || out.Df, needs_acceleration(m, out), memory_);
  write_transition(m, d_, s_, out, arena);
  is_kept_ = true;
}

}  // namespace mujacobian

// A step that has been differentiated, with a copy of its data. Second derivatives at the same
// state then need neither mj_forward nor the first derivatives again.
#pragma once

#include "step/transition.h"

namespace mujacobian {

class KeptStep {
 public:
  // Writes the same as `transition` for a state without sleeping trees, and keeps the step. A step
  // that consists of several evaluations (RK4), or whose contacts come from the converged collider,
  // is not kept. The arrays of `d` may change afterwards.
  void transition(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena);

  void clear() { is_kept_ = false; }
  bool is_kept() const { return is_kept_; }

  // The data and the differential, whose systems are solved. MuJoCo must not be called with the
  // address of the data, which has another state now.
  const DataView& data() const { return d_; }
  const StepDifferential& differential() const { return s_; }

 private:
  Arena memory_;
  bool is_kept_ = false;
  DataView d_;
  StepDifferential s_;
};

}  // namespace mujacobian

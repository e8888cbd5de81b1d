// A step that has been differentiated, with a copy of its data. Products and second derivatives at
// the same state then need neither mj_forward nor the first derivatives again.
#pragma once

#include "step/transition.h"

namespace mujacobian {

class KeptStep {
 public:
  // Writes the same as `transition` for a state without sleeping trees, and keeps the step. A step
  // that consists of several evaluations (RK4), whose contacts come from the converged collider, or
  // whose sensors or delayed controls need calls of MuJoCo, is not kept. The arrays of `d` may
  // change afterwards.
  void transition(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena);

  // Differentiates the step without sensors and keeps it, with the columns of qfrc_applied if
  // `forces` is true. A step that `transition` does not keep is not kept here, either.
  void differentiate(const ModelView& m, const DataView& d, bool forces);

  void clear() { is_kept_ = false; }
  bool is_kept() const { return is_kept_; }
  bool has_forces() const { return has_forces_; }

  // The data and the differential, whose systems are solved. MuJoCo must not be called with the
  // address of the data, which has another state now.
  const DataView& data() const { return d_; }
  const StepDifferential& differential() const { return s_; }

 private:
  bool is_possible(const ModelView& m, const DataView& d) const;

  Arena memory_;
  bool is_kept_ = false, has_forces_ = false;
  DataView d_;
  StepDifferential s_;
};

}  // namespace mujacobian

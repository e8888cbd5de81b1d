// Minimization of the incremental potential of a step by Newton's method with a line search.
#pragma once

#include "rods/hessian.h"

namespace mujacobian::rods {

enum class Status {
  kConverged,
  kIterations,  // the limit of iterations was reached
  kLineSearch,  // the potential does not decrease along the direction
  kNotFinite,   // the potential or the direction is not finite
  kStalled,  // neither the Newton step nor the potential decreases, and rounding is not the reason
};

struct Report {
  Status status;
  int iterations;
  double correction;  // largest entry of the last Newton step, m or rad
  double residual;    // largest entry of the gradient before this step, N or N m
  int slot;           // with the largest entry of the last Newton step; -1 if it is not finite
  int contact;        // deepest contact of this slot, or -1
};

struct Options {
  double tolerance;  // of the correction
  int iterations;    // maximum number
};

class Newton {
 public:
  explicit Newton(const Model& m);

  // Write the state at the end of the step, or the best state found if the method fails.
  Report minimize(const Problem& p, const Options& options, State& q);

 private:
  // Write the initial guess: the previous step repeated, or no step, whichever has less energy
  void guess(const Problem& p, State& q);
  // Compute the Newton direction at q and whether the Hessian was shifted. Returns false if the
  // potential is not finite.
  bool direct(const Problem& p, const State& q);
  // Move q along the direction by a step that decreases the potential. Returns false if there is
  // none.
  bool search(const Problem& p, State& q);
  // Compute the simplified Newton step at q with the Hessian of the last iterate, which estimates
  // the remaining error without the assembly of a Hessian. Returns its largest entry.
  double chord(const Problem& p, const State& q);
  // Returns the directional derivative of the potential at q along the direction
  double slope_at(const Problem& p, const State& q);
  // Returns whether rounding errors of the gradient explain a Newton step of this size  (ROD-33)
  bool is_rounding(const State& q);
  // Returns the largest absolute entry in slots that are not fixed
  double largest(const Tangent& d) const;
  // Returns the slot with this entry
  int worst(const Tangent& d) const;

  const Model& model_;
  const std::vector<char> fixed_;
  Hessian hessian_;
  Tangent gradient_, direction_, scratch_;
  State trial_;
  Sum sum_;
  bool shifted_ = false;  // whether the factored Hessian has a shifted diagonal
};

}  // namespace mujacobian::rods

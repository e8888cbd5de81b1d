// The minimum of a step's incremental potential, by Newton's method with a line search.
#pragma once

#include "rods/problem.h"

namespace mujacobian::rods {

enum class Status { kConverged, kIterations, kLineSearch, kNotFinite };

struct Report {
  Status status;
  int iterations;
  double correction;  // largest entry of the last Newton step, m or rad
  double residual;    // largest entry of the gradient before it, N or N m
};

struct Options {
  double tolerance;  // on the correction
  int iterations;
};

class Newton {
 public:
  explicit Newton(const Model& m);

  // Find the state at the end of the step. On failure q is the best state found.
  Report minimize(const Problem& p, const Options& options, State& q);

 private:
  // q at which the iterations begin: the step before again, or no step, whichever is lower
  void guess(const Problem& p, State& q);
  // Newton's direction at q; false if the potential is not finite. Sets shifted_.
  bool direct(const Problem& p, const State& q);
  // Move q along the direction as far as the potential falls; false if it does not.
  bool search(const Problem& p, State& q);
  // The Newton step at q with the Hessian of the iteration's beginning: what is left to do. It
  // costs no assembly of a Hessian. Returns its largest entry.
  double chord(const Problem& p, const State& q);
  double largest(const Tangent& d) const;

  const Model& model_;
  const std::vector<char> fixed_;
  Skyline hessian_;
  Factor factor_;
  Tangent gradient_, direction_;
  State trial_;
  Sum sum_;
  bool shifted_ = false;
};

}  // namespace mujacobian::rods

// WASP after Liang and Rakita (arXiv 2512.21109): Jacobians persist from plan to plan and are
// corrected along a few directions. They are approximate and serve comparisons.
#pragma once

#include <vector>

#include "step/transition.h"

namespace mujacobian {

class Wasp {
 public:
  Wasp(const void* model, double eps);

  // Reuse the Jacobians of knots `shift`, `shift` + 1, ... for knots 0, 1, ...; the last one also
  // serves for the knots beyond the previous plan.
  void begin(int T, int shift);

  // Write the Jacobians of knot t at the state of `data`; null blocks are skipped. Different knots
  // may be evaluated in parallel.
  void evaluate(void* data, int t, const Outputs& out, Arena& arena);

 private:
  // Columns of one kind of input: positions, velocities, activations or controls.
  struct Block {
    int kind, size, first, most;  // columns first .. first + size - 1; maximum number of probes
    std::vector<double> basis;    // (size, size) orthonormal rows
  };
  struct Knot {
    bool is_known = false;
    std::vector<double> columns;  // (inputs, nx + ns), columns of the Jacobian
    int next[4] = {0, 0, 0, 0};   // next direction to probe, for each block
  };

  void fill(void* data, Knot& knot, Arena& arena) const;
  void correct(void* data, const double* row, const Block& block, Knot& knot, int& next,
               const double* base, Arena& arena) const;
  bool perturb(const void* data, const Block& block, const double* direction, double* used) const;
  void read(const void* data, double* out) const;
  void write(const Knot& knot, const Outputs& out) const;

  const void* model_;
  double eps_;
  int nq_, nv_, na_, nu_, nx_, ns_;
  std::vector<Block> blocks_;
  std::vector<Knot> knots_;
};

}  // namespace mujacobian

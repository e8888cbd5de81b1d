// WASP: Jacobians kept from plan to plan and corrected along a few directions, after Liang and
// Rakita (arXiv 2512.21109). Approximate; here to be compared with.
#pragma once

#include <vector>

#include "step/transition.h"

namespace mujacobian {

class Wasp {
 public:
  Wasp(const void* model, double eps);

  // Keep the Jacobians of knots `shift` .. as those of 0 ..; the last one stands for those beyond.
  void begin(int T, int shift);

  // Knot t at the state in `data`; null blocks are skipped. Knots are independent.
  void evaluate(void* data, int t, const Outputs& out, Arena& arena);

 private:
  // The columns of one kind of input.
  struct Block {
    int kind, size, first, most;  // columns first .. first + size - 1; probes per call
    std::vector<double> basis;    // (size, size) orthonormal rows
  };
  struct Knot {
    bool is_known = false;
    std::vector<double> columns;  // (inputs, nx + ns): the Jacobian by columns
    int next[4] = {0, 0, 0, 0};   // direction to probe, by block
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

// The matrices A, B, C and D of one mj_step, from an mjData on which mj_forward has just run.
#pragma once

#include "step/differential.h"

namespace mujacobian {

// Row-major outputs. The work for a null block is skipped.
struct Outputs {
  double* A;                               // (nx, nx), nx = 2nv + na
  double* B;                               // (nx, nu)
  double* C;                               // (ns, nx), ns = nsensordata
  double* D;                               // (ns, nu)
  double* Bf;                              // (nx, nv), with respect to qfrc_applied
  double* Df;                              // (ns, nv)
  const unsigned char* sensors = nullptr;  // (nsensor): sensors whose rows are written; null: all
};

// Returns the blocks of item `index` of a batch. The blocks of all items are consecutive in `out`.
Outputs batch_item(const ModelView& m, const Outputs& out, std::size_t index);

// Returns whether these outputs need the derivative of the acceleration in all components.
bool needs_acceleration(const ModelView& m, const Outputs& out);

// Writes the derivatives of a step whose differential has been computed for these outputs, and
// solves its systems. The integrator is not RK4.
void write_transition(const ModelView& m, const DataView& d, const StepDifferential& s,
                      const Outputs& out, Arena& arena);

// Writes the derivatives of the step. Throws Unsupported for elements that are not supported, and
// std::domain_error if no derivative exists.
void transition(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena);

}  // namespace mujacobian

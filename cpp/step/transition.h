// A, B, C, D of one mj_step from an mjData on which mj_forward has just run.
#pragma once

#include <cstddef>

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// Row-major outputs; a null block is skipped, and its work.
struct Outputs {
  double* A;                               // (nx, nx), nx = 2nv + na
  double* B;                               // (nx, nu)
  double* C;                               // (ns, nx), ns = nsensordata
  double* D;                               // (ns, nu)
  double* Bf;                              // (nx, nv), with respect to qfrc_applied
  double* Df;                              // (ns, nv)
  const unsigned char* sensors = nullptr;  // (nsensor) whose rows are written; null: of all
};

// The blocks of item `index` of a batch, whose blocks follow one another in `out`.
Outputs batch_item(const ModelView& m, const Outputs& out, std::size_t index);

// Throws Unsupported for what is not covered, std::domain_error where no derivative exists.
void transition(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena);

}  // namespace mujacobian

// A and B of one mj_step from an mjData on which mj_forward has just run.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// Row-major outputs; a null block is skipped, and its work.
struct Outputs {
  double* A;   // (2nv, 2nv)
  double* B;   // (2nv, nu)
  double* Bf;  // (2nv, nv), with respect to qfrc_applied
};

// Throws Unsupported for what is not covered, std::domain_error where no derivative exists.
void transition(const ModelView& m, const DataView& d, const Outputs& out, Arena& arena);

}  // namespace mujacobian

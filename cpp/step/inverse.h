// The derivative of inverse dynamics. MuJoCo's qfrc_inverse is the applied force that a given
// acceleration requires:
//   f(q, v, a) = ID(q, v, a) - passive forces - J^T f(J a - aref) [- actuator forces].
// docs/derivations/inverse.md.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// Row-major, transposed as in mjd_inverseFD: one row per input. A null block is skipped.
struct InverseOutputs {
  double *DfDq, *DfDv, *DfDa;  // (nv, nv)
  double *DsDq, *DsDv, *DsDa;  // (nv, nsensordata)
  double* DmDq;                // (nv, nC), entries of M as MuJoCo stores them
};

// Computes the blocks. `d` contains the results of mj_inverse at its qacc, and those of
// mj_fwdActuation if `actuation` is set.
void inverse(const ModelView& m, const DataView& d, bool actuation, const InverseOutputs& out,
             Arena& arena);

}  // namespace mujacobian

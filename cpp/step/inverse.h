// Inverse dynamics and its derivative: the force that is missing at a given acceleration,
//   f(q, v, a) = ID(q, v, a) - passive forces - J^T f(J a - aref) [- actuator forces],
// MuJoCo's qfrc_inverse. docs/derivations/inverse.md.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// Row-major, transposed as in mjd_inverseFD: a row per input. A null block is skipped.
struct InverseOutputs {
  double *DfDq, *DfDv, *DfDa;  // (nv, nv)
  double *DsDq, *DsDv, *DsDa;  // (nv, nsensordata)
  double* DmDq;                // (nv, nC), entries of M as MuJoCo stores them
};

// `d` holds the results of mj_inverse at its qacc, with `actuation` also of mj_fwdActuation.
void inverse(const ModelView& m, const DataView& d, bool actuation, const InverseOutputs& out,
             Arena& arena);

}  // namespace mujacobian

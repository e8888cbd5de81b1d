// Diagnostics: the distance of a state from states where the step has no derivative, and the
// convergence of the constraint solver. No derivative depends on them.
#pragma once

#include <string>
#include <vector>

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

struct RowDiagnostic {
  std::string element, state;
  double zone;           // distance of J a - aref from the boundary of its state, an acceleration
  double activation;     // distance from the state where the row disappears, a length or angle
  double region;         // distance from the state where the collider uses other features, a length
  double contact_error;  // distance of MuJoCo's contact from that of a converged collider
  std::string feature;   // name of the features of a contact, empty for other rows
};

struct ClampDiagnostic {
  std::string element, clamp;
  double distance;  // to the nearer end of the range, negative outside
};

struct Diagnostics {
  std::vector<RowDiagnostic> rows;
  std::vector<ClampDiagnostic> clamps;
  double residual_before,
      residual;           // of the constraint problem at MuJoCo's qacc and at the optimum
  double solver_error;    // distance of MuJoCo's qacc from the optimum
  double solver_limit;    // above which the solver counts as not converged
  double collider_error;  // distance of MuJoCo's qacc from that of a converged collider
};

// Returns the diagnostics of the state of an mjData on which mj_forward has just run, and writes
// M + J^T H J to K (nv, nv).
Diagnostics diagnose(const ModelView& m, const DataView& d, double* K, Arena& arena);

}  // namespace mujacobian

// How far a state is from the places where the step has no derivative, and how well the constraint
// solver converged. Not on the way to any derivative.
#pragma once

#include <string>
#include <vector>

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

struct RowDiagnostic {
  std::string element, state;
  double zone;        // of the row's state, in units of acceleration: |J a - aref| to its boundary
  double activation;  // until the row disappears, in its units of length or angle
  double region;      // until the collider uses other features, in units of length
  double contact_error;  // of MuJoCo's contact: its distance from that of a converged collider
  std::string feature;   // name of the features of a contact, empty for other rows
};

struct ClampDiagnostic {
  std::string element, clamp;
  double distance;  // to the nearer end of the range; negative beyond it
};

struct Diagnostics {
  std::vector<RowDiagnostic> rows;
  std::vector<ClampDiagnostic> clamps;
  double residual_before, residual;  // of the constraint solver, before and after polishing
  double solver_error;               // distance of MuJoCo's qacc from the optimum
  double collider_error;             // its distance from that of a converged collider
};

// Diagnose the state of an mjData on which mj_forward has just run; K (nv, nv) receives
// M + J^T H J.
Diagnostics diagnose(const ModelView& m, const DataView& d, double* K, Arena& arena);

}  // namespace mujacobian

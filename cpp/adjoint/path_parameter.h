// Columns of parameters of a force along a path, which tendons and actuators share.
#pragma once

#include "adjoint/curve.h"
#include "second_order/path.h"

namespace mujacobian {

// The changes of the force along a path, and of its damping and stiffness in the integrator's
// matrix.
struct PathChange {
  const Path& path;
  double force, damping, stiffness;
};

// Adds the columns of a force along a path, and of its damping in the matrix of implicit
// integrators:
//   early = m force,   late = -h D w = h damping m (m . w)                                  (PAR-5)
// Dofs with a saturated force are `frozen`; null: none.
void add_path(const ColumnContext& x, const PathChange& change, const unsigned char* frozen,
              const Column& column);

// The slopes of a number with respect to activations and controls.
struct InputSlopes {
  int count;
  const int* input;
  const double* slope;
};

// The change of the force along a path per unit of a parameter, and of its damping in the matrix of
// implicit integrators, with their slopes.
struct PathLaw {
  double force, by_length, by_rate;
  InputSlopes by_input;
  double damping, damping_by_length, damping_by_rate;
  InputSlopes damping_by_input;
};

// Adds the slopes of (mu . m) force + h damping nu . m (m . w)                      (PAR-5, HVP-10)
void add_law_slopes(const CurveContext& x, const CurvedPath& path, const PathLaw& law,
                    const unsigned char* frozen, const ParameterSlopes& to);

}  // namespace mujacobian

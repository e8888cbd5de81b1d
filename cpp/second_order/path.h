// Second derivatives of forces along paths, contracted with the multipliers of a step.
// docs/derivations/second_order.md.
#pragma once

#include "second_order/path_function.h"
#include "step/differential.h"

namespace mujacobian {

// Adds the second derivatives of mu . m^T F for all forces along paths, and of nu . h D w for the
// damping D of the implicit integrators. The rows `mixed` of the form belong to w.
void add_path_hessians(const ModelView& m, const DataView& d, const StepDifferential& s,
                       const double* mu, const double* nu, const QuadraticForm& form, Arena& arena);

// Returns `mu` where it counts: not at frozen dofs (null: none are frozen).
const double* acting_motion(const Path& p, const double* mu, const unsigned char* frozen, int nv,
                            Arena& arena);

// The damping of a path in the matrix of an implicit integrator, nu . D w. `path` must outlive it.
// (HES-22)
PathProduct implicit_power(const ModelView& m, const StepDifferential& s, const CurvedPath& path,
                           const double* nu, Arena& arena);

// The second derivatives of all forces along paths: first those of tendons, then of actuators.
struct PathCurvatures {
  const PathCurvature* item;
  int count, tendons;
};
PathCurvatures path_curvatures(const ModelView& m, const DataView& d, const PathForces& paths,
                               Arena& arena);

// A number with its derivatives with respect to the length, the rate and the inputs of a path.
struct LawDerivatives {
  double value, by_length, by_rate;
  double InputSlope::* by_input;
  const double* second;  // (count, count) of PathCurvature
};

// Returns such a number, or the damping of a force in the matrices of implicit integrators, as a
// function. `path` must outlive it.
PathFunction law_function(const DataView& d, const PathCurvature& c, const CurvedPath& path,
                          const LawDerivatives& law, Arena& arena);
PathFunction damping_function(const DataView& d, const PathCurvature& c, const CurvedPath& path,
                              Arena& arena);

// Returns a force along a path as a function of its length, its rate and its inputs. `path` must
// outlive it.                                                                            (HES-19)
PathFunction force_function(const DataView& d, const PathCurvature& c, const CurvedPath& path,
                            Arena& arena);

}  // namespace mujacobian

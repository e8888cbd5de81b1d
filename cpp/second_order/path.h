// Second derivatives of forces along paths with constant moments, contracted with the multipliers
// of a step. docs/derivations/second_order.md.
#pragma once

#include "step/differential.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// Adds the second derivatives of mu . m^T F for all forces along paths, and of nu . h D w for the
// damping D of the implicit integrators. The rows `mixed` of the form belong to w.
void add_path_hessians(const ModelView& m, const DataView& d, const StepDifferential& s,
                       const double* mu, const double* nu, const QuadraticForm& form, Arena& arena);

// Adds the second derivatives of `weight` times a force along a path with constant moments.
// (HES-19)
void add_path_curvature(const PathCurvature& c, double weight, const QuadraticForm& form,
                        Arena& arena);

}  // namespace mujacobian

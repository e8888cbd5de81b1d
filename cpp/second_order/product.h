// Products of the Hessian of a step with a vector, without the Hessian: the vector-Jacobian product
// of the step, and its derivative along a direction. docs/derivations/second_order.md.
#pragma once

#include <functional>

#include "second_order/hessian.h"

namespace mujacobian {

// A direction of the inputs of a step; null: zero.
struct StepDirection {
  const double* state;  // (nx)
  const double* ctrl;   // (nu)
  const double* force;  // (nv), qfrc_applied
};

// Cotangents of the inputs of a step; null: not computed.
struct InputCotangent {
  double* state;  // (nx)
  double* ctrl;   // (nu)
  double* force;  // (nv)
};

struct StepCurvature;

// A second derivative with respect to two different parameters, or to one twice, in a list.
struct ParameterPair {
  int j, k;
  double second;
  const ParameterPair* next;
};

// Parameters as inputs of a step. Each has two columns, and phi = mu . early + nu . late is a
// function of the state, the controls, both accelerations and the parameters. The slopes are its
// derivatives at fixed multipliers.                                                       (HVP-6)
struct ParameterCurvature {
  const double *early, *late;  // (count, nv), the columns
  double* state;               // (count, nx), slopes
  double* ctrl;                // (count, nu)
  double* by_early;            // (count, nv), by the acceleration that solves g = 0
  double* by_late;             // (count, nv), by w
  const ParameterPair* pairs;  // each pair once
};

// Parameters that change along a direction.
struct CurvedParameters {
  int count;
  const double* along;  // (count), the direction
  double* first;        // (count), as InputCotangent; null: not computed
  double* second;       // (count)
  std::function<ParameterCurvature(const ModelView&, const DataView&, const StepCurvature&, Arena&)>
      differentiate;
  // returns the early columns alone
  std::function<const double*(const ModelView&, const DataView&, const StepDifferential&, Arena&)>
      columns;
};

// Writes `first` = (A, B, Bf)^T next, which is possible only without cotangents of sensors, and the
// derivative along `along`: `second` = H along + (A, B, Bf)^T change, where `change` (nx) is the
// change of the cotangent of the next state; null: zero. The rest is as for `hessian`. (HVP-1)
// `params` are further inputs; null: none.
void pull_back_twice(const ModelView& m, const DataView& d, const StepCotangent& given,
                     const double* change, const StepDirection& along, const InputCotangent& first,
                     const InputCotangent& second, const CurvedParameters* params, Arena& arena);

// The same for a step that is kept, without columns of qfrc_applied and without noslip, whose
// sensors with a cotangent read no acceleration.
void pull_back_twice(const ModelView& m, const KeptStep& step, const StepCotangent& given,
                     const double* change, const StepDirection& along, const InputCotangent& first,
                     const InputCotangent& second, const CurvedParameters* params, Arena& arena);

// The same for the acceleration of a stage of RK4, with its cotangent in `curved`, if only the
// parameters change. The residual of the stage is the derivative of the acceleration.    (HVP-13)
void pull_back_stage(const ModelView& m, const DataView& d, const StepCurvature& curved,
                     const CurvedParameters& params, const ParameterCurvature& slopes,
                     const InputCotangent& second, Arena& arena);

}  // namespace mujacobian

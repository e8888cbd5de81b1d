// Derivatives with respect to physical parameters: how the equations of one step change with
// numbers of the model, while position, velocity, input and acceleration are fixed. Constants that
// mj_setConst derives from them (invweight0, ...) are parameters of their own; the caller applies
// the chain rule. docs/derivations/parameters.md.
#pragma once

#include "adjoint/parameter_kind.h"
#include "step/differential.h"

namespace mujacobian {

struct ParameterList {
  const Parameter* item;
  int count;
};

// The columns of `count` parameters or directions, one row each. Null if there are no parameters.
struct ParameterColumns {
  int count;
  double* early;  // (count, nv): -dg at the acceleration where the step is differentiated
  double* late;   // (count, nv): right-hand side of the integrator's equation, after d(acc)
  double* act;    // (count, na): changes of the next activations

  // The columns of parameter k.
  ParameterColumns at(const ModelView& m, int k) const {
    if (!count) return *this;
    return {1, early + k * m.nv, late + k * m.nv, act + k * m.na};
  }
};

ParameterColumns parameter_columns(const ModelView& m, const DataView& d, const StepDifferential& s,
                                   const ParameterList& params, Arena& arena);

// The same for `count` directions. A direction has one number per parameter; null: zero.
ParameterColumns directed_columns(const ModelView& m, const DataView& d, const StepDifferential& s,
                                  const ParameterList& params, const double* const* directions,
                                  int count, Arena& arena);

// Throws Unsupported for parameters whose derivative is not supported in this model.
void require_parameters(const ModelView& m, const ParameterList& params);

// Returns whether a sensor depends on one of the parameters other than through the state. Sensors
// whose weights (null: ones) are all zero do not count. Throws Unsupported if such a dependence is
// not supported.
bool sensors_depend(const ModelView& m, const ParameterList& params, const double* weights);

// Returns the derivatives of the sensors with respect to the parameters at fixed state,
// (ns, parameters).                                                                       (PAR-16)
const double* sensed_parameters(const ModelView& m, const DataView& d, const ParameterList& params,
                                Arena& arena);

}  // namespace mujacobian

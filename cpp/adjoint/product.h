// Products of the Jacobian of one step with vectors, from an mjData on which mj_forward has just
// run. The Jacobian is not formed: a product with it costs one solve with each factor of the step,
// whatever the number of inputs. Where a step has no such factors (RK4, noslip), and for sensors,
// the products go through A, B, C and D. docs/derivations/adjoint.md.
#pragma once

#include "adjoint/parameter.h"
#include "step/transition.h"

namespace mujacobian {

// A change of the inputs; null: none.
struct Tangent {
  const double* state;   // (nx), as the rows of A
  const double* ctrl;    // (nu)
  const double* force;   // (nv), qfrc_applied
  const double* params;  // one per parameter
};

// The change of the outputs it makes; null: not wanted.
struct Change {
  double* state;    // (nx)
  double* sensors;  // (ns)
};

// `count` changes at once: the step is differentiated once for all of them. The parameters are
// covered (require_parameters), `seen` says that sensors see them (sensors_see).
void jvp(const ModelView& m, const DataView& d, const Tangent* along, const ParameterList& params,
         bool seen, const Change* out, int count, Arena& arena);

// The derivative of a scalar with respect to the outputs; null: zero.
struct Cotangent {
  const double* state;    // (nx)
  const double* sensors;  // (ns)
};

// The same with respect to the inputs; null: not wanted.
struct Pullback {
  double* state;   // (nx)
  double* ctrl;    // (nu)
  double* force;   // (nv)
  double* params;  // one per parameter, to which the product is added
};

void vjp(const ModelView& m, const DataView& d, const Cotangent& given, const ParameterList& params,
         const Pullback& out, Arena& arena);

}  // namespace mujacobian

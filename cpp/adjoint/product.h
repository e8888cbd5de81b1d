// Products of the Jacobian of one step with vectors, from an mjData on which mj_forward has just
// run. The Jacobian is not formed: a product costs one solve with each factor of the step, whatever
// the number of inputs. Steps without such factors (RK4, noslip) and sensors use A, B, C and D.
// docs/derivations/adjoint.md.
#pragma once

#include "adjoint/parameter.h"
#include "step/kept_step.h"
#include "step/transition.h"

namespace mujacobian {

// A change of the inputs; null: zero.
struct Tangent {
  const double* state;   // (nx), as the rows of A
  const double* ctrl;    // (nu)
  const double* force;   // (nv), qfrc_applied
  const double* params;  // one per parameter
};

// The resulting change of the outputs; null: not computed.
struct Change {
  double* state;    // (nx)
  double* sensors;  // (ns)
};

// Jacobian-vector products for `count` changes. The step is differentiated once for all of them.
// The caller has checked the parameters (require_parameters). `direct` is the result of
// sensors_depend.
void jvp(const ModelView& m, const DataView& d, const Tangent* along, const ParameterList& params,
         bool direct, const Change* out, int count, Arena& arena);

// The derivative of a scalar with respect to the outputs; null: zero.
struct Cotangent {
  const double* state;    // (nx)
  const double* sensors;  // (ns)
};

// The derivative of the scalar with respect to the inputs; null: not computed.
struct Pullback {
  double* state;   // (nx)
  double* ctrl;    // (nu)
  double* force;   // (nv)
  double* params;  // one per parameter; the product is added to it
  // (ncon, kContactNumbers) of contacts that the caller has given: adjoint/given_contact.h
  double* contacts = nullptr;
};

// Vector-Jacobian product.
void vjp(const ModelView& m, const DataView& d, const Cotangent& given, const ParameterList& params,
         const Pullback& out, Arena& arena);

// Returns whether the product of a step can use factors, so that the step may be kept.
bool may_keep(const ModelView& m);

// Returns whether the product of a step that is kept may include sensors with these cotangents
// (nsensordata): they read no acceleration and no force, and need no call of MuJoCo.
bool may_keep_sensors(const ModelView& m, const double* sensors, Arena& arena);

// Products of a step that is kept. The results are those of `vjp` without parameters, and of `jvp`
// without sensors.
void vjp(const ModelView& m, const KeptStep& step, const Cotangent& given, const Pullback& out,
         Arena& arena);
void jvp(const ModelView& m, const KeptStep& step, const Tangent& along,
         const ParameterList& params, double* next_state, Arena& arena);

}  // namespace mujacobian

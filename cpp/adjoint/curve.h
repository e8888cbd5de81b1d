// Second derivatives of a step with respect to parameters: the derivatives of their columns,
// contracted with the multipliers of the step. docs/derivations/second_order.md.
#pragma once

#include "adjoint/column.h"
#include "second_order/forms.h"
#include "second_order/product.h"

namespace mujacobian {

// The slopes of one parameter, as in ParameterCurvature. Functions add to them.
struct ParameterSlopes {
  double *state, *ctrl;
  double *early, *late;  // by the acceleration that solves g = 0, and by w
};

struct BodyMotions;

// The step whose columns are differentiated. Parts that several parameters share are computed on
// first use.
class CurveContext {
 public:
  CurveContext(const ModelView& model, const DataView& data, const StepCurvature& step,
               Arena& scratch)
      : m(model),
        d(data),
        curved(step),
        s(step.s),
        columns(model, data, step.s, scratch),
        arena(scratch) {}

  // Return views with the virtual velocities of the multipliers of g and of s.
  const DataView& virtual_early() { return at(early_, curved.mu.g); }
  const DataView& virtual_late() { return at(late_, curved.mu.s); }

  // Returns the motions of a body in a pass with a virtual velocity. The components of a body's
  // inertia share them: each combination of both has a slot, which holds the last body.
  const BodyMotions& body_motions(int slot, const Pass& pass, const DataView& virt, int body);

  const ModelView& m;
  const DataView& d;
  const StepCurvature& curved;
  const StepDifferential& s;
  ColumnContext columns;
  Arena& arena;

 private:
  const DataView& at(const DataView*& view, const double* mu);
  const DataView *early_ = nullptr, *late_ = nullptr;
  static constexpr int kSlots = 5;
  BodyMotions* motions_[kSlots] = {};
};

// The second derivatives with respect to two parameters.
class ParameterPairs {
 public:
  explicit ParameterPairs(Arena& arena) : arena_(arena) {}
  void add(int j, int k, double second);
  const ParameterPair* first() const { return first_; }

 private:
  Arena& arena_;
  const ParameterPair* first_ = nullptr;
};

// Add the second derivatives with respect to two parameters of these families.
void couple_gravity(CurveContext& x, const ParameterList& params, ParameterPairs& pairs);
void couple_springs(CurveContext& x, const ParameterList& params, ParameterPairs& pairs);
void couple_tendons(CurveContext& x, const ParameterList& params, ParameterPairs& pairs);
void couple_weights(CurveContext& x, const ParameterList& params, ParameterPairs& pairs);

// Returns the slopes of parameter k.
ParameterSlopes slopes_at(const ModelView& m, const ParameterCurvature& all, int k);

// Adds the slopes and pairs of all parameters of contacts and of limits of joints.
void curve_rows(CurveContext& x, const ParameterList& params, const ParameterCurvature& all,
                ParameterPairs& pairs);

// Returns d(number of the contact) per unit of a number of its geom `side`, zero if the parameter
// belongs to another geom, or the contact does not read it.
double contact_weight(const ModelView& m, const ContactView& contact, int side, const Parameter& p);

// Returns d(log R) per unit of a weight, for the first row of a block; zero if R is constant.
double weight_share(const CurveContext& x, const Block& block, const Parameter& p);

// Returns the columns of the parameters and the derivatives of these columns.             (HVP-6)
ParameterCurvature curve_parameters(const ModelView& m, const DataView& d,
                                    const StepCurvature& curved, const ParameterList& params,
                                    Arena& arena);

// Returns parameters that change along a direction, for `pull_back_twice`. The arrays have one
// number per parameter.
CurvedParameters curved_parameters(const ParameterList& params, const double* along, double* first,
                                   double* second);

// Throws Unsupported for parameters whose second derivative is not supported in this model. Sensors
// count if their cotangents, in the vector `sensors` (nsensordata), are not zero; null: all are
// zero.
void require_curved(const ModelView& m, const ParameterList& params, const double* sensors);

}  // namespace mujacobian

// The step, differentiated once in all directions, and the second derivatives of its equations.
// From these, the Hessian or its product with a vector is made. docs/derivations/second_order.md.
#pragma once

#include "second_order/contact.h"
#include "second_order/hessian.h"
#include "step/differential.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// The multipliers of the two implicit equations of a step: of g = 0, which determines the
// acceleration, and of s = 0, which determines w.                                         (HES-6)
struct Multipliers {
  double *g, *s;
};

// The forms of a step share G. The mixed rows of `late` belong to w, and those of `early` to the
// acceleration that solves g = 0, where this is another one.
struct StepForms {
  QuadraticForm late, early;
};

// A second derivative with respect to two entries of the state that belong to different components,
// in a list. Sensors of two frames have such derivatives.
struct CrossTerm {
  int j, k;
  double second;
  const CrossTerm* next;
};

struct CurvedSweeps;

struct StepCurvature {
  StepDifferential s;
  Multipliers mu;
  StepForms forms;
  const SlidingRows* sliding;  // null: none
  const CrossTerm* cross;      // null: none
  const CurvedSweeps* sweeps;  // of the noslip solver; null: none
};

// Returns whether component c solves both systems, so that its two accelerations differ.
inline bool solves_both(const StepDifferential& s, int c) {
  return s.two_systems && s.solves_acceleration(c);
}

// Returns whether a sensor with a cotangent reads a result of MuJoCo's constraint solver.
bool reads_solution(const ModelView& m, const StepCotangent& given, Arena& arena);

// Differentiates a step twice. `forces` asks for the columns of qfrc_applied. Only the derivative
// of the position update with respect to w twice is not in the forms, the sliding rows, and the
// second derivatives of the next activations. `m` and `d` have a converged collider.
StepCurvature differentiate_twice(const ModelView& m, const DataView& d, const StepCotangent& given,
                                  bool forces, Arena& arena);

// The same for a step that has been differentiated once. `through_acceleration` (nv) is a cotangent
// of the acceleration, to which those of sensors are added.
StepCurvature curve_step(const ModelView& m, const DataView& d, const StepDifferential& s,
                         const StepCotangent& given, double* through_acceleration, Arena& arena);

// Writes the second derivatives of a step whose systems are solved, without those of the next
// activations.
void write_curvature(const ModelView& m, const DataView& d, const StepCurvature& curved,
                     const HessianOutputs& out, Arena& arena);

// Solves the systems of a step and writes its second derivatives.
void write_step_hessian(const ModelView& m, const DataView& d, const StepCurvature& curved,
                        const StepCotangent& given, const HessianOutputs& out, Arena& arena);

// Adds the second derivative with respect to entries j and k of (state, controls) to the blocks.
void add_entry(const ModelView& m, const HessianOutputs& out, int j, int k, double second);

}  // namespace mujacobian

// Muscles: force-length and force-velocity curves, passive force, activation dynamics.
// docs/derivations/activation.md.
#pragma once

#include "layout/views.h"
#include "smooth/number.h"

namespace mujacobian {

// The active force per activation and its derivative with respect to the rate, which MuJoCo's
// implicit integrators know.
struct MuscleGain {
  Number gain, rate_slope;
};
MuscleGain muscle_gain(const ModelView& m, int actuator, const Number& length, const Number& rate);

// The passive force.
Number muscle_bias(const ModelView& m, int actuator, const Number& length);

// d(activation)/dt; `prm` is MuJoCo's dynprm.
Number muscle_activation_rate(const double* prm, const Number& ctrl, const Number& act);

}  // namespace mujacobian

// Muscles: force-length and force-velocity curves, passive force, activation dynamics.
// docs/derivations/activation.md.
#pragma once

#include "actuation/number.h"
#include "layout/views.h"

namespace mujacobian {

// The active force per activation, and its derivatives with respect to the rate and the length,
// which MuJoCo's implicit integrators use.
struct MuscleGain {
  Number gain, rate_slope, length_slope;
};
MuscleGain muscle_gain(const ModelView& m, int actuator, const Number& length, const Number& rate);

// The passive force and its derivative with respect to the length.
struct MuscleBias {
  Number force, length_slope;
};
MuscleBias muscle_bias(const ModelView& m, int actuator, const Number& length);

// The smallest control and the largest activation that a muscle can have. MuJoCo clamps values
// beyond them.
struct MuscleBounds {
  double least_control, most_activation;
};

// Returns d(activation)/dt. `prm` is MuJoCo's dynprm.
Number muscle_activation_rate(const double* prm, const Number& ctrl, const Number& act,
                              const MuscleBounds& bounds);

}  // namespace mujacobian

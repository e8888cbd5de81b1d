// Muscles: force-length and force-velocity curves, passive force, activation dynamics.
// docs/derivations/activation.md.
#pragma once

#include "actuation/number.h"
#include "layout/views.h"

namespace mujacobian {

// The active force per activation, and its derivatives with respect to the rate and the length,
// which MuJoCo's implicit integrators use.
template <class T>
struct MuscleGain {
  T gain, rate_slope, length_slope;
};
template <class T>
MuscleGain<T> muscle_gain(const ModelView& m, int actuator, const T& length, const T& rate);

// The passive force and its derivative with respect to the length.
template <class T>
struct MuscleBias {
  T force, length_slope;
};
template <class T>
MuscleBias<T> muscle_bias(const ModelView& m, int actuator, const T& length);

// The smallest control and the largest activation that a muscle can have. MuJoCo clamps values
// beyond them.
struct MuscleBounds {
  double least_control, most_activation;
};

// Returns d(activation)/dt. `prm` is MuJoCo's dynprm.
template <class T>
T muscle_activation_rate(const double* prm, const T& ctrl, const T& act,
                         const MuscleBounds& bounds);

}  // namespace mujacobian

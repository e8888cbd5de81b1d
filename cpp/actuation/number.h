// Dual numbers with derivatives with respect to the variables of one actuator: its length, its
// rate, its controls and its activations. Functions of these variables are templates over T, which
// is Number, or CurvedNumber with second derivatives. The force laws of most actuators are linear
// and depend on the first variables only: then T is LinearNumber.
#pragma once

#include "spatial/dual.h"
#include "spatial/jet.h"

namespace mujacobian {

namespace local {
inline constexpr int kLength = 0, kRate = 1;
inline constexpr int kCtrl = 2, kMaxCtrls = 4;  // position, velocity, feedforward, voltage
inline constexpr int kAct = 7, kMaxActs = 5;    // a motor with every state
inline constexpr int kCount = 12;               // whole vector registers
}  // namespace local

using Number = Dual<local::kCount>;
using CurvedNumber = Jet<local::kCount>;
using LinearNumber = Dual<4>;  // one vector register: the length, the rate and one control

// Returns variable number k of the actuator with this value.
template <class T>
T local_variable(double value, int k) {
  T x(value);
  x.d[k] = 1;
  return x;
}

// Returns whether x is outside the range, where clamping makes the derivative zero. The ends of the
// range count as inside.
inline bool outside(double x, const double range[2]) { return x < range[0] || x > range[1]; }
inline double clamp(double x, const double range[2]) {
  return x < range[0] ? range[0] : x > range[1] ? range[1] : x;
}
template <class T>
T clamp(const T& x, const double range[2]) {
  // tie: activation range
  return outside(x.v, range) ? T(clamp(x.v, range)) : x;
}
// Returns x clamped to [-limit, limit], if the limit is positive.
template <class T>
T clamp(const T& x, double limit) {
  const double range[2] = {-limit, limit};
  return limit > 0 ? clamp(x, range) : x;
}

}  // namespace mujacobian

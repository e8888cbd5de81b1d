// The nearest points of two segments, as the minimum of a smooth and strictly convex function.
#pragma once

#include "spatial/vector.h"

namespace mujacobian::rods {

// Fractions of two segments at which they are nearest, and the function there (ROD-45).
struct Nearest {
  double s, t;
  double value;       // square of the smooth distance
  double ss, st, tt;  // second derivatives with respect to s and t
};

// Minimize |offset + s e - t f|^2 + barrier (phi(s) + phi(t)), where phi(s) = -log(4 s (1 - s)).
Nearest nearest(Vec3 offset, Vec3 e, Vec3 f, double barrier);

}  // namespace mujacobian::rods

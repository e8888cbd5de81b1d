// Small helpers for points and directions that move with a body.
#pragma once

#include "spatial/vector.h"

namespace mujacobian {

// The part of v that is perpendicular to the unit vector n.
inline Vec3 across(Vec3 v, Vec3 n) { return v - dot(v, n) * n; }

// Velocity of the material point p of a body that moves by `motion` about the point `from`.
inline Vec3 velocity(const Motion& motion, Vec3 from, Vec3 p) { return at_point(motion, p - from); }

}  // namespace mujacobian

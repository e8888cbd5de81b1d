// A cylinder that almost stands on a plane. MuJoCo computes the distances of its points with an
// error of rounding over tilt, and their derivative contains that error divided by the tilt again.
// The derivative uses accurate points.                                                    (CON-47)
#pragma once

#include <optional>

#include "contact/geom.h"
#include "layout/views.h"

namespace mujacobian {

// Returns that of the four points at which MuJoCo lets a cylinder touch a plane with the normal n,
// in the frame of the cylinder, at which p is: both ends of the lowest line, and two points of the
// lower rim that form an equilateral triangle with its lower end. Empty if p is elsewhere. (CON-8)
std::optional<Vec3> touching_point(const Geom& cylinder, Vec3 n, Vec3 p);

// Whether rounding matters in an active contact between a plane and a standing cylinder.
bool has_standing_cylinder(const ModelView& m, const DataView& d);

// Throws Unsupported if these rounding errors exceed 1e-6 of a derivative, for evaluations that use
// MuJoCo's own points.
void require_no_standing_cylinder(const ModelView& m, const DataView& d);

// Writes accurate contacts of standing cylinders into `d`, an mjData of our own.
void place_standing_cylinders(const ModelView& m, const DataView& d);

}  // namespace mujacobian

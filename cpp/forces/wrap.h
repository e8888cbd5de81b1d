// The points where a tendon touches the sphere or cylinder that it wraps around, and their motion
// on its surface as a function of the ends of the tendon. docs/derivations/wrapping.md.
#pragma once

#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

struct Wrap {
  bool inside;      // the tendon passes through the inside of the geom and touches it at one point
  Vec3 point[2];    // touching points next to the two ends
  Mat3 slip[2][2];  // d(point[w])/d(end[e]) with the geom fixed, in world axes
};

// Returns the wrap that MuJoCo found. Element `index` of the model's wrap objects is the geom, and
// `points` are the two points in mjData.wrap_xpos between `ends`. Throws Unsupported if no known
// branch gives these points, or if they have no derivative.
Wrap find_wrap(const ModelView& m, const DataView& d, int tendon, int index, const Vec3 ends[2],
               const double* points);

}  // namespace mujacobian

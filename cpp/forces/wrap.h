// The points where a tendon touches the sphere or cylinder that it wraps around, and their motion
// on its surface as a function of the ends of the tendon. docs/derivations/wrapping.md.
#pragma once

#include "layout/views.h"
#include "spatial/vector.h"
#include "tree/relative.h"

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

// The length of the tendon and its rate at the virtual velocities of the ends, as functions of the
// ends in the frame of the geom.                                                         (HES-45)
struct WrapCurvature {
  RelativeFunction length, rate;
};

// Returns them for the wrap of `find_wrap`. `velocity` has the velocities of the ends relative to
// the geom. Throws Unsupported if the points have no second derivative.
WrapCurvature curve_wrap(const ModelView& m, const DataView& d, int tendon, int index,
                         const Vec3 ends[2], const double* points, const Vec3 velocity[2]);

}  // namespace mujacobian

// A point of each geom, fixed to its body or nearest to the other point.
#pragma once

#include "spatial/vector.h"

namespace mujacobian {

struct CenterPair {
  enum Slide {
    kFixed,    // fixed to its body
    kLine,     // slides along a line of its body                                  (CON-3, CON-4)
    kCircle,   // slides around a circle of its body                                      (CON-5)
    kSegment,  // a SegmentPoint, whose velocity the caller computes                     (CON-15)
  };
  Vec3 center[2]{};
  Slide slide[2] = {kFixed, kFixed};
  Vec3 axis[2]{};    // unit direction of the line, or axis of the circle
  Vec3 middle[2]{};  // kCircle: its middle
};

// Velocities of the centers for motions about `from`. Sliding centers stay nearest to one another.
// `moved` must already hold the velocity of a center with kSegment.
void vary_centers(const CenterPair& c, Vec3 from, const Motion motion[2], Vec3 moved[2]);

// Finds the nearest points of the segments from a to b and from c to d, as places from 0 to 1.
void nearest_points(Vec3 a, Vec3 b, Vec3 c, Vec3 d, double& s, double& t);

}  // namespace mujacobian

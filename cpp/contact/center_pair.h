// A point of each geom, fixed to its body or nearest to the other point.
#pragma once

#include "contact/kinematics.h"

namespace mujacobian {

enum class CenterSlide {
  kFixed,    // fixed to its body
  kLine,     // slides along a line of its body                                    (CON-3, CON-4)
  kMiddle,   // slides along a line of its body by `share` of the same                   (CON-35)
  kCircle,   // slides around a circle of its body                                        (CON-5)
  kSegment,  // a SegmentPoint, whose velocity the caller computes                       (CON-15)
};

template <class S>
struct CenterPairT {
  using Slide = CenterSlide;
  using enum CenterSlide;
  Vec3T<S> center[2]{};
  Slide slide[2] = {kFixed, kFixed};
  Vec3T<S> axis[2]{};    // unit direction of the line, or axis of the circle
  Vec3T<S> middle[2]{};  // kCircle: its middle
  double share = 0;      // kMiddle
};
using CenterPair = CenterPairT<double>;

// Velocities of the centers for motions about `from`. Sliding centers stay nearest to one another.
// `moved` must already hold the velocity of a center with kSegment.
template <class S>
void vary_centers(const CenterPairT<S>& c, Vec3T<S> from, const MotionT<S> motion[2],
                  Vec3T<S> moved[2]);

// The pair as constants of type S.
template <class S>
CenterPairT<S> constant(const CenterPair& c) {
  return {.center = {c.center[0], c.center[1]},
          .slide = {c.slide[0], c.slide[1]},
          .axis = {c.axis[0], c.axis[1]},
          .middle = {c.middle[0], c.middle[1]},
          .share = c.share};
}

// The pair after infinitesimal motions of its geoms about `from`; `velocities` are those of the
// centers, see vary_centers.
template <class S>
CenterPairT<S> moved(const CenterPair& c, Vec3T<S> from, const MotionT<S> motion[2],
                     const Vec3T<S> velocities[2]) {
  CenterPairT<S> pair = constant<S>(c);
  for (int s = 0; s < 2; s++) {
    pair.center[s] += velocities[s];
    pair.axis[s] = turned(motion[s], c.axis[s]);
    pair.middle[s] = moved_point(motion[s], from, c.middle[s]);
  }
  return pair;
}

// Finds the nearest points of the segments from a to b and from c to d, as places from 0 to 1.
void nearest_points(Vec3 a, Vec3 b, Vec3 c, Vec3 d, double& s, double& t);

}  // namespace mujacobian

// A convex piece of a height field: for collisions, MuJoCo cuts each cell of the grid along its
// diagonal into two triangles and extends them down to the base.
#pragma once

#include "contact/support_feature.h"

namespace mujacobian {

struct Prism {
  Vec3 vertex[6];    // in the world: the lower triangle, then the upper one
  double inflation;  // radius that MuJoCo adds to the other geom
  double fuzz;       // largest distance of a witness point from its feature

  // The vertex or edge at a witness point, otherwise the face whose normal is closest to n.
  SupportSide side(Vec3 n, Vec3 witness) const;
};

}  // namespace mujacobian

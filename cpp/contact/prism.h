// The convex pieces of which a height field is made for collisions: each cell of the grid is cut
// along its diagonal into two triangles, each reaching down to the base.
#pragma once

#include "contact/geometry.h"

namespace mujacobian {

struct Prism {
  Vec3 vertex[6];    // world; the lower triangle, then the upper one above it
  double inflation;  // radius that MuJoCo adds to the other geom
  double fuzz;       // how far witness points may be off their feature

  // The feature at a witness point: a vertex, an edge, or the face that faces n most squarely.
  SupportSide side(Vec3 n, Vec3 witness) const;
};

}  // namespace mujacobian

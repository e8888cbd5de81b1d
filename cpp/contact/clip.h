// MuJoCo's clipping of one face of a polytope by the sides of another, with the motion of what is
// left. Faces of meshes need not be flat: polygons of the hull are merged from triangles that are
// only nearly coplanar, so that points depend on the order in which the sides cut.
#pragma once

#include "contact/polytope.h"

namespace mujacobian {

// A vertex of the clipped polygon; motion[k]: when the second geom makes the k-th of the six unit
// motions, turns first, while the first geom stays.                                     (CON-23)
struct ClippedVertex {
  Vec3 point, motion[6];
};

// Finds, among the vertices of face f1 of p[1] clipped by the sides of face f0 of p[0], the one
// that x is, seen along `ray` (zero: from everywhere); the motions are about `from`.
bool find_clipped(const Polytope p[2], int f0, int f1, Vec3 x, Vec3 ray, Vec3 from,
                  ClippedVertex& found);

}  // namespace mujacobian

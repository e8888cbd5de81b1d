// A face of a polytope that the sides of another face have clipped, as MuJoCo does it, with the
// motion of its vertices. Faces of meshes need not be flat, because MuJoCo merges triangles that
// are only nearly coplanar. Therefore the vertices depend on the order in which the sides cut.
#pragma once

#include "contact/contact_point.h"
#include "contact/polytope.h"

namespace mujacobian {

// A vertex of the clipped polygon. motion[k] is its velocity when the second geom makes the k-th of
// the six unit motions, rotations first, and the first geom is at rest.                    (CON-23)
struct ClippedVertex {
  Vec3 point, motion[6];
};

// Clips face f1 of p[1] by the sides of face f0 of p[0], and finds the vertex that is at x in
// projection along `ray` (zero: no projection). Its motions are about `from`. Returns false if no
// vertex is there.
bool find_clipped(const Polytope p[2], int f0, int f1, Vec3 x, Vec3 ray, Vec3 from,
                  ClippedVertex& found);

// Sets `out` to the motions of the vertex x of such a polygon about `position`, after infinitesimal
// motions of the geoms about `from`. Geom `cutter` of the contact has the first one of the faces.
// (CON-38)
void move_clipped(const ContactSource& source, int cutter, const int face[2], Vec3 x, Vec3 from,
                  const MotionT<ContactDual> motion[2], Vec3T<ContactDual> position,
                  Vec3T<ContactDual> out[6]);

}  // namespace mujacobian

// Features of two convex polytopes that other pairs use, too: cylinders have flat caps.
#pragma once

#include "contact/geometry.h"
#include "contact/polytope.h"

namespace mujacobian {

// A point of the manifold of two faces that are nearly aligned. The face of geom 1 has the normal
// of the contact.                                                                    (CON-12,
// CON-13)
bool identify_aligned(const Polytope p[2], ContactGeometry& g);

// An end of an edge over a face of geom `owner`, or the point where it crosses a side of the face.
bool identify_edge_on_face(const Polytope p[2], int owner, ContactGeometry& g);

}  // namespace mujacobian

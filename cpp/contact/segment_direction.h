// The direction from the segment of a capsule or cylinder to the line of its surface that MuJoCo
// cuts by the sides of a face. (CON-16)
#pragma once

#include "contact/polytope.h"
#include "contact/segment_point.h"

namespace mujacobian {

// Finds the direction that explains `off`, the vector from the segment to the contact's point on
// the line. The segment is that of `geom`, and the face is one of `p`. `tolerance` is that of the
// collider. Sets direction, towards, nearest and rim of s, whose other members are given.
bool find_direction(const Geom& geom, const Polytope& p, int face, Vec3 off, double tolerance,
                    SegmentPoint& s);

// Whether a cylinder that penetrates another geom does so least along its axis, less than along the
// normal of the face. The collider's normal then has no part across the axis except rounding.
bool stands_on_cap(const Geom& cylinder, const Polytope& p, int face);

}  // namespace mujacobian

// The signed distance fields of geoms that tactile sensors read, inside the geoms.       (SEN-34)
#pragma once

#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

// A distance, which is positive outside of the geom, and its gradient, both in the geom's frame.
// MuJoCo's fields of boxes and ellipsoids have gradients whose length is not one.
struct FieldValue {
  double distance;
  Vec3 gradient;
};

// Returns whether tactile sensors read the field of a geom. They ignore meshes without octree.
bool has_distance_field(const ModelView& m, int geom);

// Returns the field of a geom at a point in its frame. The gradient is only valid inside the geom
// and on its surface. Throws Unsupported where it is not defined, and for plugins.
FieldValue distance_field(const ModelView& m, int geom, Vec3 x);

}  // namespace mujacobian

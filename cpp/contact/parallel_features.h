// Geoms whose nearest features are parallel, so that their nearest points are not unique.
#pragma once

#include "layout/views.h"

namespace mujacobian {

// Along faces, edges and axes that are parallel, both nearest points can slide. MuJoCo reports one
// of many pairs of points, which jumps when the features tilt.
enum class Parallel {
  kNone,   // the nearest points are unique
  kLines,  // an edge or axis of each geom
  kFace,   // a face of one geom, and a face, edge or axis of the other
};
Parallel parallel_features(const ModelView& m, const DataView& d, const ContactView& pair);

}  // namespace mujacobian

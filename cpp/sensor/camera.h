// The rays of a camera's pixels.
#pragma once

#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

// A ray in the axes of the frame that it is fixed to, relative to the position of the frame. The
// direction has unit length.
struct LocalRay {
  Vec3 origin, direction;
};

LocalRay pixel_ray(const ModelView& m, int camera, int column, int row);

}  // namespace mujacobian

// The rays of a camera's pixels, and projections into its image.
#pragma once

#include "sensor/frame.h"

namespace mujacobian {

// A ray in the axes of the frame that it is fixed to, relative to the position of the frame. The
// direction has unit length.
struct LocalRay {
  Vec3 origin, direction;
};

LocalRay pixel_ray(const ModelView& m, int camera, int column, int row);

// The focal lengths of a camera in pixels, and the position of a site in its axes.
struct Projection {
  Vec3 focal, position;
};

// Throws Unsupported if the site is in the plane of the camera.
Projection project(const Sensing& s, int sensor, const Frame& site, const Frame& camera);

}  // namespace mujacobian

// Rangefinders: the ray along the z axis of a site, or the rays of all pixels of a camera, to the
// nearest surface.
#pragma once

#include "layout/enums.h"
#include "sensor/camera.h"
#include "sensor/frame.h"

namespace mujacobian {

// The surface that a ray hits: flat, or the quadric (p - center)^T Q (p - center) = constant.
struct Surface {
  bool flat;
  Vec3 center;
  Mat3 Q;
};

struct Ray {
  Vec3 origin, direction;
  double slope;     // depth per distance
  int geom;         // that the ray hits; -1: none
  double distance;  // along the ray
  Vec3 point, normal;
  Surface surface;
};

// Returns a ray that is fixed to a frame. Throws Unsupported if it has no derivative.
Ray cast_ray(const Sensing& s, int sensor, const Frame& frame, const LocalRay& local);

// Calls visit(local, first) for every ray of a sensor, whose first value has this index.
template <class F>
void visit_rays(const ModelView& m, int sensor, F visit) {
  const int id = m.sensor_objid[sensor];
  if (m.sensor_objtype[sensor] == object::kSite) {
    return visit(LocalRay{{0, 0, 0}, {0, 0, 1}}, 0);
  }
  const int width = m.cam_resolution[2 * id], pixels = width * m.cam_resolution[2 * id + 1];
  const int size = m.sensor_dim[sensor] / pixels;
  for (int k = 0; k < pixels; k++) visit(pixel_ray(m, id, k % width, k / width), k * size);
}

}  // namespace mujacobian

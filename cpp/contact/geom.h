// A geom: its type, pose and size.
#pragma once

#include "spatial/vector.h"

namespace mujacobian {

struct DataView;
struct ModelView;

struct Geom {
  int type = 0;
  Vec3 position{};
  Mat3 frame{};
  const double* size = nullptr;  // three numbers of the model
  Vec3 axis() const { return column(frame, 2); }
  Vec3 to_local(Vec3 p) const { return transpose_mul(frame, p - position); }
  Vec3 to_world(Vec3 p) const { return position + frame * p; }
};

Geom load_geom(const ModelView& m, const DataView& d, int id);

// Velocity of a point p of a geom's surface, both in the frame of the geom, with a unit of its size
// `component`: outward if the point is on an end or side that this size sets, else zero.   (PAR-15)
Vec3 surface_growth(const Geom& geom, Vec3 p, int component);

// The same for a face with this outward normal, in the frame of the geom.
Vec3 face_growth(const Geom& geom, Vec3 outward, int component);

}  // namespace mujacobian

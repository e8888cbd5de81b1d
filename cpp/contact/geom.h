// A geom: its type, pose and size.
#pragma once

#include "contact/kinematics.h"

namespace mujacobian {

struct DataView;
struct ModelView;

template <class S>
struct GeomT {
  int type = 0;
  Vec3T<S> position{};
  Mat3T<S> frame{};
  const double* size = nullptr;  // three numbers of the model
  Vec3T<S> axis() const { return column(frame, 2); }
  Vec3T<S> to_local(Vec3T<S> p) const { return transpose_mul(frame, p - position); }
  Vec3T<S> to_world(Vec3T<S> p) const { return position + frame * p; }
};
using Geom = GeomT<double>;

template <class S>
GeomT<S> constant(const Geom& g) {
  return {g.type, g.position, g.frame, g.size};
}

// The geom after an infinitesimal motion about `from`.
template <class S>
GeomT<S> moved(const Geom& g, Vec3T<S> from, const MotionT<S>& motion) {
  return {g.type, moved_point(motion, from, g.position), turned_frame(motion, g.frame), g.size};
}

Geom load_geom(const ModelView& m, const DataView& d, int id);

// Velocity of a point p of a geom's surface, both in the frame of the geom, with a unit of its size
// `component`: outward if the point is on an end or side that this size sets, else zero.   (PAR-15)
Vec3 surface_growth(const Geom& geom, Vec3 p, int component);

// The same for a face with this outward normal, in the frame of the geom.
Vec3 face_growth(const Geom& geom, Vec3 outward, int component);

}  // namespace mujacobian

// The frame of an object (body, geom, site, camera) and how the dofs move it.
#pragma once

#include "sensor/sensing.h"
#include "spatial/quaternion.h"
#include "tree/point.h"

namespace mujacobian {

struct Frame {
  Point point;  // its position as a point of the body that it belongs to
  int last;     // last dof that moves the body
  Vec3 position;
  Mat3 axes;

  // the dofs that move the frame: those that move the body, except for cameras that follow things
  int n;
  const int* dofs;
  const Vec3* moved;   // change of the position
  const Vec3* turned;  // rotation of the axes
};

// The body that an object belongs to.
int object_body(const ModelView& m, int type, int id);

// `type` is one of MuJoCo's object types with a frame.
Frame make_frame(Sensing& s, int type, int id);

// The frame of a camera that follows or looks at something; `fixed` is that of its body's point.
Frame follow(Sensing& s, int camera, const Frame& fixed);

// The orientation that MuJoCo reports, fixed to the object's body even for such cameras.
Quaternion object_quaternion(const ModelView& m, const DataView& d, int type, int id);

// Velocity of the frame's body at its position, and its derivative with respect to the i-th dof of
// the frame and to the velocity of a dof that moves the body.                            (SEN-5)
Motion frame_velocity(const Sensing& s, const Frame& frame);
Motion frame_velocity_dq(const Sensing& s, const Frame& frame, int i);
inline Motion frame_velocity_dv(const Sensing& s, const Frame& frame, int dof) {
  Motion axis = dof_axis(s.d, dof);
  return {axis.ang, at_point(axis, frame.point.offset)};
}

// `dof` moves the frame's body.
inline bool carries(const Sensing& s, const Frame& frame, int dof) {
  return frame.last >= 0 && s.f.tree.is_ancestor(dof, frame.last);
}

}  // namespace mujacobian

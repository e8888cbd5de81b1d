// The frame of an object (body, geom, site, camera), and its motion with the dofs.
#pragma once

#include "sensor/sensing.h"
#include "spatial/quaternion.h"
#include "tree/point.h"

namespace mujacobian {

struct Frame {
  Point point;  // its position as a point of its body
  int last;     // last dof that moves the body
  Vec3 position;
  Mat3 axes;

  // the dofs that move the frame; for tracking and targeting cameras not only those of its body
  int n;
  const int* dofs;
  const Vec3* moved;   // change of the position
  const Vec3* turned;  // rotation of the axes
};

// Returns the body of an object.
int object_body(const ModelView& m, int type, int id);

// Returns the frame of an object. `type` is one of MuJoCo's object types that have a frame.
Frame make_frame(Sensing& s, int type, int id);

// Returns the frame of a tracking or targeting camera; `fixed` is a frame that is fixed to its
// body.
Frame follow(Sensing& s, int camera, const Frame& fixed);

// Returns the orientation that MuJoCo reports. It is fixed to the body of the object, also for
// tracking and targeting cameras.
Quaternion object_quaternion(const ModelView& m, const DataView& d, int type, int id);

// Velocity of the frame's body at the position of the frame, and its derivatives with respect to
// the i-th dof of the frame, and to the velocity of a dof that moves the body. (SEN-5)
Motion frame_velocity(const Sensing& s, const Frame& frame);
Motion frame_velocity_dq(const Sensing& s, const Frame& frame, int i);
inline Motion frame_velocity_dv(const Sensing& s, const Frame& frame, int dof) {
  Motion axis = dof_axis(s.d, dof);
  return {axis.ang, at_point(axis, frame.point.offset)};
}

// Returns whether the dof moves the body of the frame.
inline bool carries(const Sensing& s, const Frame& frame, int dof) {
  return frame.last >= 0 && s.f.tree.is_ancestor(dof, frame.last);
}

}  // namespace mujacobian

// Virtual motions of force and torque sensors. Each value of such a sensor is the force that
// opposes a virtual motion of the subtree of the site's body. The axis is fixed to the site.
// (SEN-17)
#pragma once

#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

struct VirtualMotions {
  int body;
  Vec3 reference;  // the point about which `axis` is given
  Motion axis[3];

  // Returns axis k about a point of space.
  Motion about_point(int k, Vec3 point) const { return about(axis[k], point - reference); }

  // Returns whether the motions move the body. MuJoCo's cfrc_ext excludes the world.
  bool holds(const ModelView& m, int id) const {
    if (id == 0) return false;
    while (id > body) id = m.body_parentid[id];
    return id == body;
  }
};

VirtualMotions virtual_motions(const ModelView& m, const DataView& d, int sensor);

}  // namespace mujacobian

// What a force or torque sensor measures: each value is the force against a virtual motion of
// everything under the site's body, whose axis is fixed to the site.                      (SEN-17)
#pragma once

#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

struct VirtualMotions {
  int body;
  Vec3 reference;  // the point about which `axis` is given
  Motion axis[3];

  // axis k about a point of space
  Motion about_point(int k, Vec3 point) const { return about(axis[k], point - reference); }

  // They move the body; MuJoCo's cfrc_ext leaves the world out.
  bool holds(const ModelView& m, int id) const {
    if (id == 0) return false;
    while (id > body) id = m.body_parentid[id];
    return id == body;
  }
};

VirtualMotions virtual_motions(const ModelView& m, const DataView& d, int sensor);

}  // namespace mujacobian

// Contacts found once more with another collider, in the data to which they were copied.
#pragma once

#include "layout/views.h"

namespace mujacobian {

// Two contacts of the same geoms.
inline bool is_same_pair(const ContactView& a, const ContactView& b) {
  return a.geom.v[0] == b.geom.v[0] && a.geom.v[1] == b.geom.v[1];
}

// Replace the contacts that depend on the collider's tolerance by those that the collider of `m`
// finds. Only their pairs of geoms collide again, unless the contacts that MuJoCo would find change
// in number or begin or end to act: then all do. `d`, an mjData of our own, is viewed again.
void find_contacts_again(const ModelView& m, DataView& d);

}  // namespace mujacobian

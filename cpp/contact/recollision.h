// Contacts found once more with another collider, in the data to which they were copied.
#pragma once

#include "layout/views.h"

namespace mujacobian {

// Replace the contacts that depend on the collider's tolerance by those that the collider of `m`
// finds. Only their pairs of geoms collide again, unless the contacts that MuJoCo would find change
// in number or begin or end to act: then all do. `d`, an mjData of our own, is viewed again.
void find_contacts_again(const ModelView& m, DataView& d);

}  // namespace mujacobian

// Contacts that another collider finds again, in an mjData of our own.
#pragma once

#include "layout/views.h"

namespace mujacobian {

// Whether two contacts have the same geoms.
inline bool is_same_pair(const int a[2], const int b[2]) { return a[0] == b[0] && a[1] == b[1]; }

// Replaces the contacts that depend on the collider's tolerance by those that the collider of `m`
// finds. Only their pairs of geoms collide again. All pairs do if the number of contacts changes,
// or if a contact begins or ceases to act. Contacts of standing cylinders become accurate. `d`, a
// view of an mjData of our own, is updated.
void find_contacts_again(const ModelView& m, DataView& d);

}  // namespace mujacobian

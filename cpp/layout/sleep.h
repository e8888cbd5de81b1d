// Which trees and elements sleep, after mj_forward. MuJoCo does not compute a sleeping element: it
// keeps the values that it had when it fell asleep.
#pragma once

#include "layout/enums.h"
#include "layout/views.h"

namespace mujacobian {

inline bool any_asleep(const ModelView& m, const DataView& d) {
  return (m.opt.enableflags & enable::kSleep) && d.ntree_awake < m.ntree;
}

inline bool is_asleep(const ModelView& m, const DataView& d, int tree) {
  return (m.opt.enableflags & enable::kSleep) && d.tree_asleep[tree] >= 0;
}

// Returns whether an actuator or a sensor sleeps.
bool element_asleep(const ModelView& m, const DataView& d, int object_type, int id);

// The state of a sleeping tree is more than (qpos, qvel, act). So where states come without the
// rest of mjData, in trajectories and batches, no tree may sleep: the first function returns the
// model without the flag sleep, and the second one throws Unsupported with the name of a body that
// sleeps.
ModelView without_sleep(const ModelView& m);
void require_awake(const ModelView& m, const DataView& d);

}  // namespace mujacobian

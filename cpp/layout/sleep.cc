#include "layout/sleep.h"

#include "layout/engine.h"
#include "layout/unsupported.h"

namespace mujacobian {

bool element_asleep(const ModelView& m, const DataView& d, int object_type, int id) {
  return any_asleep(m, d) &&
         engine().mj_sleepState(m.address, d.address, object_type, id) == sleep_state::kAsleep;
}

ModelView without_sleep(const ModelView& m) {
  ModelView view = m;
  view.opt.enableflags &= ~enable::kSleep;
  return view;
}

void require_awake(const ModelView& m, const DataView& d) {
  for (int t = 0; d.ntree_awake < m.ntree && t < m.ntree; t++) {
    if (d.tree_asleep[t] < 0) continue;
    throw Unsupported(element_name(m, object::kBody, m.tree_bodyadr[t]),
                      "it sleeps, and states of a trajectory or batch do not contain the state of "
                      "sleeping trees: disable the flag sleep");
  }
}

}  // namespace mujacobian

#include "tree/composite.h"

namespace mujacobian {

Composite* composites(const ModelView& m, const DataView& d, const Motion* acceleration,
                      Arena& arena) {
  // each body alone
  Composite* composite = arena.take<Composite>(m.nbody);
  for (int b = 1; b < m.nbody; b++) {
    Inertia inertia{d.cinert + 10 * b};
    Motion v = load_motion(d.cvel + 6 * b);
    Force momentum = inertia * v;
    composite[b].force = inertia * acceleration[b] + cross(v, momentum);
    composite[b].rate = inertia_rate(inertia, v, momentum.ang);
    composite[b].momentum = momentum.lin;
  }
  // add the children to their parents
  for (int b = m.nbody - 1; b > 0; b--) {
    int parent = m.body_parentid[b];
    if (parent == 0) continue;
    composite[parent].force += composite[b].force;
    composite[parent].rate = composite[parent].rate + composite[b].rate;
    composite[parent].momentum += composite[b].momentum;
  }
  return composite;
}

}  // namespace mujacobian

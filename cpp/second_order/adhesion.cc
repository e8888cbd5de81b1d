#include "second_order/adhesion.h"

#include "actuation/transmission.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "second_order/pair.h"
#include "tree/velocity.h"

namespace mujacobian {

PathBend adhesion_bend(const ModelView& m, const DataView& d, int actuator, const double* y,
                       Arena& arena) {
  const AdhesiveContacts all = adhesive_contacts(m, d, m.actuator_trnid[2 * actuator], arena);
  const DataView virt = at_velocity(m, d, y, arena);
  double* moment = arena.zeros<double>(all.n * all.n);
  for (int c = 0; c < all.count; c++) {
    const ContactDofs& at = all.chain[c];
    const ContactGeometry& g = all.geometry[c];
    if (const char* reason = curvature_refusal(g)) {
      throw Unsupported(element_name(m, object::kActuator, actuator), reason);
    }
    // the power of a normal force at the contact
    const ContactMap map = vary_units(g, at.all_moves);
    PairMotion p;
    p.rate = arena.zeros<double>(6 * at.stride), p.moved = arena.take<double>(6 * at.stride);
    for (int side = 0; side < 2; side++) {
      p.y[side] = about(load_motion(virt.cvel + 6 * at.body[side]), at.offset[side]);
    }
    fix_wrench(map, at.all_moves, {{0, 0, 0}, (-1.0 / all.count) * g.normal}, p);
    for (int k = 0; k < at.n; k++) {
      set_rate(at, k, load_motion(virt.cdof_dot + 6 * at.dofs[k]), p);
    }
    move_pair(at, p);
    double* half = arena.zeros<double>(at.n * at.stride);
    add_pair_hessian(m, at, &p, 1, power_curvature(m, d, g, map, at.all_moves, &p, 1, {}), half,
                     arena);
    for (int a = 0; a < at.n; a++)
      for (int b = 0; b < at.n; b++) {
        moment[all.local[at.dofs[a]] * all.n + all.local[at.dofs[b]]] +=
            half[a * at.stride + b] + half[b * at.stride + a];
      }
  }
  return {nullptr, moment};
}

}  // namespace mujacobian

// Force and torque between the body of a site and its parent.
#include "forces/external.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "second_order/sensor_form.h"
#include "sensor/subtree.h"
#include "sensor/virtual_motion.h"
#include "tree/inverse_dynamics_hessian.h"
#include "tree/point.h"

namespace mujacobian {
namespace {

// Returns a view in which the subtree of the site moves with `along`, and nothing else.  (HSE-11)
DataView virtual_view(Sensing& s, const VirtualMotions& z, Motion along, double sign) {
  const ModelView& m = s.m;
  double* cvel = s.arena.zeros<double>(6 * m.nbody);
  double* cdof_dot = s.arena.zeros<double>(6 * m.nv);
  for (int b = z.body; b < m.nbody; b++) {
    if (!z.holds(m, b)) continue;
    store_motion(cvel + 6 * b, sign * along);
    if (b == z.body) continue;  // the motion follows the joints of the body itself
    for (int k = m.body_dofadr[b], last = k + m.body_dofnum[b]; k >= 0 && k < last; k++) {
      store_motion(cdof_dot + 6 * k, cross(sign * along, dof_axis(s.d, k)));
    }
  }
  DataView virt = s.d;
  virt.cvel = cvel;
  virt.cdof_dot = cdof_dot;
  return virt;
}

// Throws Unsupported if a contact, connect or weld acts on the subtree.
void require_no_wrench(Sensing& s, int sensor, const VirtualMotions& z) {
  for (int k = 0; k < s.f.blocks.count; k++) {
    const Block& b = s.f.blocks.block[k];
    if (!b.active || !has_wrench(s.m, b)) continue;
    const BlockWrench& w = s.wrench(k);
    if (z.holds(s.m, w.body[0]) || z.holds(s.m, w.body[1])) {
      throw Unsupported(element_name(s.m, object::kSensor, sensor),
                        "second derivatives of constraint forces on its subtree");
    }
  }
}

}  // namespace

void add_wrench_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const VirtualMotions z = virtual_motions(s.m, s.d, sensor);
  require_no_wrench(s, sensor, z);
  const Motion along = weights[0] * z.axis[0] + weights[1] * z.axis[1] + weights[2] * z.axis[2];
  const QuadraticForm& early = form.forms().early;
  add_power_hessian(s.m, s.d, s.f.tree, s.f.acc, virtual_view(s, z, along, 1), early, s.arena);
  add_applied_power_hessian(s.m, s.d, virtual_view(s, z, along, -1), early, s.arena);
  visit_subtree(s.m, z.body, [&](int k, int part) {
    form.add_acceleration(k, dot(along, Inertia{s.d.crb + 10 * part} * dof_axis(s.d, k)));
  });
}

}  // namespace mujacobian

// Force and torque between the body of a site and its parent.
#include <new>

#include "forces/external.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "second_order/point_equality.h"
#include "second_order/sensor.h"
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

// Returns the motions of such a view.
VirtualMotion load_motions(const ModelView& m, const DataView& view, Arena& arena) {
  Motion *moved = arena.take<Motion>(m.nbody), *rate = arena.take<Motion>(m.nv);
  for (int b = 0; b < m.nbody; b++) moved[b] = load_motion(view.cvel + 6 * b);
  for (int k = 0; k < m.nv; k++) rate[k] = load_motion(view.cdof_dot + 6 * k);
  return {moved, rate};
}

// Throws Unsupported if a spatial tendon leaves the subtree.
void require_no_tendon(Sensing& s, int sensor, const VirtualMotions& z) {
  for (int t = 0; t < s.m.ntendon; t++) {
    if (tendon_is_fixed(s.m, t)) continue;
    if (!tendon_pull(s.m, s.d, t, z.body, z.axis, 3, s.arena).any) continue;
    throw Unsupported(element_name(s.m, object::kSensor, sensor), kTendonOfSubtree);
  }
}

// Subtracts the wrenches of contacts, connects and welds.                                 (HSE-11)
void subtract_blocks(Sensing& s, const VirtualMotions& z, Motion along, const DataView& view,
                     SensorForm& form) {
  const ModelView& m = s.m;
  const MotionSweep* sweep = nullptr;
  VirtualMotion virt{};
  for (int k = 0; k < s.f.blocks.count; k++) {
    const Block& b = s.f.blocks.block[k];
    if (!b.active || b.n == 0 || !has_wrench(m, b)) continue;
    const BlockWrench& w = s.wrench(k);
    const bool inside[2] = {z.holds(m, w.body[0]), z.holds(m, w.body[1])};
    if (!inside[0] && !inside[1]) continue;
    if (!virt.moved) virt = load_motions(m, view, s.arena);

    // the rows of the virtual motion
    double rows[kMaxRows] = {};
    for (int side = 0; side < 2; side++) {
      if (!inside[side]) continue;
      const Motion there = w.sign[side] * about(along, w.at[side] - z.reference);
      for (int r = 0; r < b.count; r++) rows[r] += dot(there, w.unit[r]);
    }
    form.add_block_acceleration(b, rows);
    const QuadraticForm& early = form.forms().early;
    if (b.geometry) {
      add_contact_hessian(m, s.d, b, s.block_motion(), {rows, &virt}, early, form.sliding(),
                          s.arena);
      continue;
    }
    if (!sweep) {
      sweep = new (s.arena.take<MotionSweep>(1))
          MotionSweep(sweep_motion(m, s.d, s.f.solved, {0, 0, 0}, s.arena));
    }
    add_point_equality_hessian(m, s.d, b, *sweep, virt, early, s.arena);
  }
}

}  // namespace

void add_wrench_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const VirtualMotions z = virtual_motions(s.m, s.d, sensor);
  require_no_tendon(s, sensor, z);
  const Motion along = weights[0] * z.axis[0] + weights[1] * z.axis[1] + weights[2] * z.axis[2];
  const QuadraticForm& early = form.forms().early;
  const DataView view = virtual_view(s, z, along, 1);
  add_power_hessian(s.m, s.d, s.f.tree, s.f.acc, view, early, s.arena);
  add_applied_power_hessian(s.m, s.d, virtual_view(s, z, along, -1), early, s.arena);
  visit_subtree(s.m, z.body, [&](int k, int part) {
    form.add_acceleration(k, dot(along, Inertia{s.d.crb + 10 * part} * dof_axis(s.d, k)));
  });
  subtract_blocks(s, z, along, view, form);
}

}  // namespace mujacobian

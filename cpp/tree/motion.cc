#include "tree/motion.h"

#include "layout/enums.h"

namespace mujacobian {

Vec3 base_acceleration(const ModelView& m) {
  if (m.opt.disableflags & disable::kGravity) return {0, 0, 0};
  return -load3(m.opt.gravity.v);
}

MotionSweep sweep_motion(const ModelView& m, const DataView& d, const double* acc, Vec3 base,
                         Arena& arena) {
  Motion* body_acc = arena.take<Motion>(m.nbody);
  DofRates* rates = arena.take<DofRates>(m.nv);
  if (!acc) acc = arena.zeros<double>(m.nv);
  body_acc[0] = {{0, 0, 0}, base};

  for (int b = 1; b < m.nbody; b++) {
    // start from the motion of the parent
    Motion v = load_motion(d.cvel + 6 * m.body_parentid[b]);
    Motion a = body_acc[m.body_parentid[b]];

    for (int j = m.body_jntadr[b], last = j + m.body_jntnum[b]; j < last; j++) {
      int dof = m.jnt_dofadr[j], type = m.jnt_type[j];

      // translations of a free joint: their axes are fixed in the world
      if (type == joint::kFree) {
        for (int k = 0; k < 3; k++, dof++) {
          rates[dof] = {};
          Motion axis = load_motion(d.cdof + 6 * dof);
          v = v + d.qvel[dof] * axis;
          a = a + acc[dof] * axis;
        }
      }

      // S'' and the motion of the body: the axes of a joint move with the motion before the joint
      int num = type == joint::kSlide || type == joint::kHinge ? 1 : 3;
      Motion v_pre = v, a_pre = a;
      for (int k = dof; k < dof + num; k++) {
        Motion axis = load_motion(d.cdof + 6 * k), axis_dot = load_motion(d.cdof_dot + 6 * k);
        rates[k].second = cross(a_pre, axis) + cross(v_pre, axis_dot);
        v = v + d.qvel[k] * axis;
        a = a + acc[k] * axis + d.qvel[k] * axis_dot;
      }

      // S' + V_post x S: the axes of a ball joint turn with the body, a single axis does not turn
      // itself
      for (int k = dof; k < dof + num; k++) {
        Motion axis = load_motion(d.cdof + 6 * k), axis_dot = load_motion(d.cdof_dot + 6 * k);
        rates[k].sum = axis_dot + (num == 1 ? axis_dot : cross(v, axis));
      }
    }
    body_acc[b] = a;
  }
  return {body_acc, rates};
}

}  // namespace mujacobian

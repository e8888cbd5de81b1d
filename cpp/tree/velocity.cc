#include "tree/velocity.h"

#include "layout/enums.h"
#include "spatial/vector.h"

namespace mujacobian {

DataView at_rest(const ModelView& m, const DataView& d, Arena& arena) {
  DataView resting = d;
  resting.qvel = arena.zeros<double>(m.nv);
  resting.cvel = arena.zeros<double>(6 * m.nbody);
  resting.cdof_dot = arena.zeros<double>(6 * m.nv);
  return resting;
}

DataView at_velocity(const ModelView& m, const DataView& d, const double* qvel, Arena& arena) {
  double* cvel = arena.zeros<double>(6 * m.nbody);
  double* cdof_dot = arena.zeros<double>(6 * m.nv);
  for (int b = 1; b < m.nbody; b++) {
    Motion v = load_motion(cvel + 6 * m.body_parentid[b]);
    for (int j = m.body_jntadr[b], last = j + m.body_jntnum[b]; j < last; j++) {
      int dof = m.jnt_dofadr[j], type = m.jnt_type[j];

      // translations of a free joint have axes fixed in the world
      if (type == joint::kFree) {
        for (int k = 0; k < 3; k++, dof++) v = v + qvel[dof] * load_motion(d.cdof + 6 * dof);
      }

      // the axes of a joint move with the motion before the joint
      int num = type == joint::kSlide || type == joint::kHinge ? 1 : 3;
      Motion before = v;
      for (int k = dof; k < dof + num; k++) {
        Motion axis = load_motion(d.cdof + 6 * k);
        store_motion(cdof_dot + 6 * k, cross(before, axis));
        v = v + qvel[k] * axis;
      }
    }
    store_motion(cvel + 6 * b, v);
  }
  DataView moving = d;
  moving.qvel = qvel;
  moving.cvel = cvel;
  moving.cdof_dot = cdof_dot;
  return moving;
}

}  // namespace mujacobian

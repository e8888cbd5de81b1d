#include "smooth/transmission.h"

#include "layout/enums.h"
#include "smooth/tendon.h"
#include "spatial/rotation.h"

namespace mujacobian {
namespace {

Path joint_path(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  int j = m.actuator_trnid[2 * actuator], type = m.jnt_type[j];
  const double* gear = m.actuator_gear + 6 * m.actuator_outadr[actuator];
  if (type == joint::kHinge || type == joint::kSlide) {
    return {1, m.jnt_dofadr + j, gear, gear, nullptr};
  }
  int n = type == joint::kFree ? 6 : 3;
  int* dofs = arena.take<int>(n);
  for (int k = 0; k < n; k++) dofs[k] = m.jnt_dofadr[j] + k;

  // ball: l = gear . log(q), so dl = gear . Jr^-1(log q) dw                              (TRN-2)
  if (type == joint::kBall) {
    const double unit[4] = {1, 0, 0, 0};
    Vec3 angle = quaternion_difference(d.qpos + m.jnt_qposadr[j], unit);
    double* dlength = arena.take<double>(3);
    store3(dlength, transpose_mul(right_jacobian_inverse(angle), load3(gear)));
    return {n, dofs, gear, dlength, nullptr};
  }
  // free: MuJoCo gives it no length
  return {n, dofs, gear, arena.zeros<double>(n), nullptr};
}

// A wrench W fixed to the site's body: m_j = S_j . W, dm_j/dq_k = S_j . (S_k x* W) where k does not
// move the axis of j, zero where it moves both                                           (TRN-4)
Path site_path(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  int site = m.actuator_trnid[2 * actuator], body = m.site_bodyid[site];
  const double* gear = m.actuator_gear + 6 * m.actuator_outadr[actuator];
  Mat3 frame = load9(d.site_xmat + 9 * site);
  Vec3 force = frame * load3(gear), torque = frame * load3(gear + 3);
  Vec3 r = load3(d.site_xpos + 3 * site) - load3(d.subtree_com + 3 * m.body_rootid[body]);
  Force wrench = {torque + cross(r, force), force};

  int n = 0;
  for (int i = last_dof(m, body); i >= 0; i = m.dof_parentid[i]) n++;
  int* dofs = arena.take<int>(n);
  double* moment = arena.take<double>(n);
  double* hessian = arena.zeros<double>(n * n);
  for (int i = last_dof(m, body), a = n - 1; i >= 0; i = m.dof_parentid[i], a--) {
    dofs[a] = i;
    moment[a] = dot(load_motion(d.cdof + 6 * i), wrench);
  }
  for (int b = 0; b < n; b++) {
    Force carried = cross(load_motion(d.cdof + 6 * dofs[b]), wrench);
    for (int a = 0; a < n; a++) {
      if (moves_axis(m, dofs[b], dofs[a])) continue;
      hessian[a * n + b] = dot(load_motion(d.cdof + 6 * dofs[a]), carried);
    }
  }
  return {n, dofs, moment, arena.zeros<double>(n), hessian};
}

}  // namespace

Path transmission_path(const ModelView& m, const DataView& d, int actuator, Path* tendon_paths,
                       Arena& arena) {
  switch (m.actuator_trntype[actuator]) {
    case transmission::kTendon: {
      int tendon = m.actuator_trnid[2 * actuator];
      Path& path = tendon_paths[tendon];
      if (path.n < 0) path = tendon_path(m, d, tendon, arena);
      return path;
    }
    case transmission::kSite:
      return site_path(m, d, actuator, arena);
    default:
      return joint_path(m, d, actuator, arena);
  }
}

const char* transmission_refusal(const ModelView& m, int actuator) {
  const int* id = m.actuator_trnid + 2 * actuator;
  switch (m.actuator_trntype[actuator]) {
    case transmission::kJoint:
    case transmission::kTendon:
      return nullptr;
    case transmission::kJointInParent: {
      int type = m.jnt_type[id[0]];
      bool scalar = type == joint::kHinge || type == joint::kSlide;
      return scalar ? nullptr : "the jointinparent transmission of a ball or free joint";
    }
    case transmission::kSite:
      return id[1] >= 0 ? "the site transmission with a reference site" : nullptr;
    case transmission::kSliderCrank:
      return "the slider-crank transmission";
    case transmission::kBody:
      return "the body (adhesion) transmission";
    default:
      return "its transmission";
  }
}

}  // namespace mujacobian

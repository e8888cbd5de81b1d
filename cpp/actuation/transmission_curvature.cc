#include "actuation/transmission_curvature.h"

#include "actuation/site_pair.h"
#include "forces/tendon.h"
#include "forces/tendon_curvature.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "spatial/quaternion.h"
#include "spatial/rotation.h"
#include "tree/relative.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

bool is_rotation(int joint_type) {
  return joint_type == joint::kBall || joint_type == joint::kFree;
}

const double* gear_of(const ModelView& m, int actuator) {
  return m.actuator_gear + 6 * m.actuator_outadr[actuator];
}

// Calls entry(b, a) for all pairs of n dofs with a <= b, and adds the result to `out` (n, n). The
// dofs increase. entry(b, a) is the derivative along dof b of the one along dof a, its ancestor or
// on another branch. Rotations of one joint have the mean of both orders.                (HES-13)
template <class F>
void add_pairs(const ModelView& m, const int* dofs, int n, double* out, F entry) {
  for (int b = 0; b < n; b++)
    for (int a = 0; a <= b; a++) {
      double value = entry(b, a);
      if (a != b && moves_axis(m, dofs[b], dofs[a])) value = 0.5 * (value + entry(a, b));
      out[a * n + b] += value;
      if (a != b) out[b * n + a] += value;
    }
}

// A joint. Its length is gear . log(q) on a ball (TRN-2), and with the gear in the frame of the
// parent, its moments are R^T gear (TRN-6).                                              (HES-46)
PathBend joint_bend(const ModelView& m, const DataView& d, int actuator, const double* y,
                    Arena& arena) {
  const int j = m.actuator_trnid[2 * actuator], type = m.jnt_type[j];
  if (!is_rotation(type)) return {nullptr, nullptr};
  const int n = type == joint::kFree ? 6 : 3;
  const double* rotation = d.qpos + m.jnt_qposadr[j] + n - 3;
  const Vec3 gear = load3(gear_of(m, actuator) + n - 3);
  PathBend bend{nullptr, nullptr};
  if (type == joint::kBall) {
    const double unit[4] = {1, 0, 0, 0};
    Mat3* curvature = arena.take<Mat3>(1);
    *curvature = log_curvature(quaternion_difference(rotation, unit), gear);
    bend.length = curvature->m;
  }
  if (m.actuator_trntype[actuator] == transmission::kJoint) return bend;
  const Vec3 torque = rotate_back(normalized(load_quaternion(rotation)), gear);
  const Vec3 motion = load3(y + m.jnt_dofadr[j] + n - 3);
  double* moment = arena.zeros<double>(n * n);
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) {
      const Vec3 once = cross(cross(torque, unit3(a)), unit3(b));
      const Vec3 swapped = cross(cross(torque, unit3(b)), unit3(a));
      moment[(n - 3 + a) * n + n - 3 + b] = 0.5 * dot(motion, once + swapped);
    }
  bend.moment = moment;
  return bend;
}

// A site. The wrench W is fixed to the body: the derivative of Y . W is S^y_l . W.       (HES-47)
PathBend site_bend(const ModelView& m, const DataView& d, int actuator, const double* y,
                   Arena& arena) {
  const int site = m.actuator_trnid[2 * actuator], body = m.site_bodyid[site];
  const Force wrench = site_wrench(m, d, site, gear_of(m, actuator));
  const DataView virt = at_velocity(m, d, y, arena);
  int* dofs = arena.take<int>(m.nv);
  const int n = merge_chains(m, body, body, dofs);
  double* moment = arena.zeros<double>(n * n);
  add_pairs(m, dofs, n, moment, [&](int b, int a) {
    return dot(load_motion(virt.cdof_dot + 6 * dofs[a]), cross(dof_axis(d, dofs[b]), wrench));
  });
  return {nullptr, moment};
}

// Returns the dofs of a pair of sites as rows and columns of its path.
const int* pair_indices(const ModelView& m, const SitePair& p, Arena& arena) {
  int* local = arena.zeros<int>(m.nv);
  for (int k = 0; k < p.n; k++) local[p.dofs[k]] = k;
  return local;
}

// Returns the joint motion without the dofs that move both sites.
const double* parting_motion(const ModelView& m, const SitePair& p, const double* y, Arena& arena) {
  double* parting = arena.zeros<double>(m.nv);
  for (int k = 0; k < p.n; k++) {
    if (p.sign(k) != 0) parting[p.dofs[k]] = y[p.dofs[k]];
  }
  return parting;
}

// The moments of a site with a reference site: the power of a force and a torque that turn with the
// reference, on both sites.                                                              (HES-48)
void add_reference_moment(const ModelView& m, const DataView& d, const SitePair& p,
                          const double* gear, const double* y, double* moment, Arena& arena) {
  const DataView virt = at_velocity(m, d, parting_motion(m, p, y, arena), arena);
  const Mat3 reference = load9(d.site_xmat + 9 * p.site[1]);
  const Vec3 force = reference * load3(gear), torque = reference * load3(gear + 3);
  const Force wrench = site_wrench(m, d, p.site[1], gear);
  const Motion motion = load_motion(virt.cvel + 6 * p.point[0].body);
  const Vec3 speed = at_point(motion, p.point[0].offset);

  // the changes of the velocities of the first site with a dof that moves it
  auto rate = [&](int k) { return load_motion(virt.cdof_dot + 6 * p.dofs[k]); };
  auto drag = [&](int k) {
    return cross(turn_axis(d, p.dofs[k]), speed) + at_point(rate(k), p.point[0].offset);
  };
  auto spin = [&](int k) { return rate(k).ang + cross(turn_axis(d, p.dofs[k]), motion.ang); };
  // power of a change of the velocities that turns by an axis
  auto turned = [&](Vec3 axis, Vec3 slide, Vec3 turn) {
    return dot(force, cross(axis, slide)) + dot(torque, cross(axis, turn));
  };
  add_pairs(m, p.dofs, p.n, moment, [&](int b, int a) {
    if (p.sign(a) == 0 || p.sign(b) == 0) return 0.0;
    const Vec3 w_a = turn_axis(d, p.dofs[a]), w_b = turn_axis(d, p.dofs[b]);
    if (p.sign(a) > 0 && p.sign(b) > 0) {
      const Vec3 slide = point_jacobian(d, p.point[0], p.dofs[b]);
      return turned(w_a, drag(b), spin(b)) + dot(force, cross(rate(a).ang, slide));
    }
    if (p.sign(a) < 0 && p.sign(b) < 0) {
      return turned(w_b, cross(w_a, speed), cross(w_a, motion.ang)) -
             dot(rate(a), cross(dof_axis(d, p.dofs[b]), wrench));
    }
    return p.sign(a) < 0 ? -turned(w_a, drag(b), spin(b)) : -turned(w_b, drag(a), spin(a));
  });
}

// The length of a site with a reference site: g . R_r^T (p - p_r) + g' . log(R_r^T R).   (HES-49)
void add_reference_length(const ModelView& m, const DataView& d, const SitePair& p,
                          const double* gear, double* length, Arena& arena) {
  const Mat3 site = load9(d.site_xmat + 9 * p.site[0]);
  RelativeFunction slide{};
  slide.by_position[0] = load9(d.site_xmat + 9 * p.site[1]) * load3(gear);
  const Vec3 position = load3(d.site_xpos + 3 * p.site[0]);
  const RelativePoints point(m, at_rest(m, d, arena), p.point[1].body, 1, &p.point[0].body,
                             &position, arena);
  point.add(slide, 1, pair_indices(m, p, arena), length, p.n);

  const Vec3 angle = relative_angle(m, d, p), torque = load3(gear + 3);
  const Vec3 slope = site * transpose_mul(right_jacobian_inverse(angle), torque);
  const Mat3 curvature = site * log_curvature(angle, torque) * transposed(site);
  add_pairs(m, p.dofs, p.n, length, [&](int b, int a) {
    const double sign_a = p.sign(a), sign_b = p.sign(b);
    const Vec3 w_a = sign_a * turn_axis(d, p.dofs[a]), w_b = sign_b * turn_axis(d, p.dofs[b]);
    // exp(w_a) comes before exp(w_b), unless b moves the reference site
    const Vec3 bracket = sign_b < 0 ? cross(w_b, w_a) : cross(w_a, w_b);
    return dot(w_a, curvature * w_b) + 0.5 * dot(slope, bracket);
  });
}

PathBend reference_bend(const ModelView& m, const DataView& d, int actuator, const double* y,
                        Arena& arena) {
  const int* id = m.actuator_trnid + 2 * actuator;
  const SitePair p = site_pair(m, d, id[0], id[1], arena);
  double *length = arena.zeros<double>(p.n * p.n), *moment = arena.zeros<double>(p.n * p.n);
  add_reference_moment(m, d, p, gear_of(m, actuator), y, moment, arena);
  add_reference_length(m, d, p, gear_of(m, actuator), length, arena);
  return {length, moment};
}

// A slider-crank: the length is a function of the crank in the frame of the slider, s minus the
// root of s^2 + rod^2 - x.x with s = axis . x (TRN-9).                                   (HES-44)
PathBend crank_bend(const ModelView& m, const DataView& d, int actuator, const double* y,
                    Arena& arena) {
  const int* id = m.actuator_trnid + 2 * actuator;
  const double gear = *gear_of(m, actuator), rod = m.actuator_cranklength[actuator];
  const SitePair p = site_pair(m, d, id[0], id[1], arena);
  const Vec3 axis = column(load9(d.site_xmat + 9 * id[1]), 2);
  const Vec3 position = load3(d.site_xpos + 3 * id[0]);
  const Vec3 x = position - load3(d.site_xpos + 3 * id[1]);
  const double s = dot(axis, x), square = s * s + rod * rod - dot(x, x);
  const RelativePoints point(m, at_velocity(m, d, y, arena), p.point[1].body, 1, &p.point[0].body,
                             &position, arena);
  RelativeFunction length{}, rate{};
  length.by_position[0] = rate.by_velocity[0] = axis;
  if (square > 0) {
    const Mat3 Q = outer(axis, axis) + (-1.0) * identity3();
    const double r = std::sqrt(square);
    const Vec3 slope = (1 / r) * (Q * x), u = point.velocity(0);
    const RootCurvature root = root_curvature(Q, r, slope, u);
    length.by_position[0] = rate.by_velocity[0] = axis - slope;
    length.positions[0][0] = rate.mixed[0][0] = (-1.0) * root.root;
    rate.by_position[0] = -(root.root * u);
    rate.positions[0][0] = (-1.0) * root.slope;
  }
  double* bends[2] = {arena.zeros<double>(p.n * p.n), arena.zeros<double>(p.n * p.n)};
  const int* local = pair_indices(m, p, arena);
  point.add(length, gear, local, bends[0], p.n);
  point.add(rate, gear, local, bends[1], p.n);
  return {bends[0], bends[1]};
}

}  // namespace

bool has_moving_moment(const ModelView& m, int actuator) {
  const int id = m.actuator_trnid[2 * actuator];
  switch (m.actuator_trntype[actuator]) {
    case transmission::kJoint:
      return false;
    case transmission::kJointInParent:
      return is_rotation(m.jnt_type[id]);
    case transmission::kTendon:
      return !tendon_is_fixed(m, id);
    default:
      return true;
  }
}

const char* transmission_curvature_refusal(const ModelView& m, int actuator) {
  const bool servo = m.actuator_trntype[actuator] == transmission::kSO3;
  return servo ? "second derivatives of orientation servos" : nullptr;
}

PathBend transmission_bend(const ModelView& m, const DataView& d, int actuator, const double* y,
                           Arena& arena) {
  switch (m.actuator_trntype[actuator]) {
    case transmission::kTendon:
      return tendon_bend(m, d, m.actuator_trnid[2 * actuator], y, arena);
    case transmission::kSite:
      return m.actuator_trnid[2 * actuator + 1] < 0 ? site_bend(m, d, actuator, y, arena)
                                                    : reference_bend(m, d, actuator, y, arena);
    case transmission::kSliderCrank:
      return crank_bend(m, d, actuator, y, arena);
    case transmission::kBody:
      throw Unsupported(element_name(m, object::kActuator, actuator),
                        "second derivatives of activations that depend on the rate of adhesion are "
                        "not supported");
    default:
      return joint_bend(m, d, actuator, y, arena);
  }
}

}  // namespace mujacobian

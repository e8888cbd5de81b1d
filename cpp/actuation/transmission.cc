#include "actuation/transmission.h"

#include "actuation/site_pair.h"
#include "contact/identification.h"
#include "contact/wrench.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "linear/lanes.h"
#include "spatial/quaternion.h"
#include "spatial/rotation.h"
#include "tree/point.h"

namespace mujacobian {
namespace {

bool is_scalar(int joint_type) {
  return joint_type == joint::kHinge || joint_type == joint::kSlide;
}

// The path of an actuator on a joint.
Path joint_path(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  int j = m.actuator_trnid[2 * actuator], type = m.jnt_type[j];
  const double* gear = m.actuator_gear + 6 * m.actuator_outadr[actuator];
  if (is_scalar(type)) return {1, m.jnt_dofadr + j, gear, gear, nullptr};

  int n = type == joint::kFree ? 6 : 3;
  int* dofs = arena.take<int>(n);
  for (int k = 0; k < n; k++) dofs[k] = m.jnt_dofadr[j] + k;
  double* dlength = arena.zeros<double>(n);  // MuJoCo gives free joints no length
  const double* rotation = d.qpos + m.jnt_qposadr[j] + n - 3;

  // ball: l = gear . log(q), so dl = gear . Jr^-1(log q) dw                              (TRN-2)
  if (type == joint::kBall) {
    const double unit[4] = {1, 0, 0, 0};
    Vec3 angle = quaternion_difference(rotation, unit);
    store3(dlength, transpose_mul(right_jacobian_inverse(angle), load3(gear)));
  }
  if (m.actuator_trntype[actuator] == transmission::kJoint) {
    return {n, dofs, gear, dlength, nullptr};
  }

  // gear in the frame of the parent: the torque is R^T gear, d(R^T gear) = (R^T gear) x dw (TRN-6)
  double* moment = arena.take<double>(n);
  double* hessian = arena.zeros<double>(n * n);
  Vec3 torque = rotate_back(normalized(load_quaternion(rotation)), load3(gear + n - 3));
  for (int k = 0; k < n - 3; k++) moment[k] = gear[k];
  store3(moment + n - 3, torque);
  Mat3 turn = skew(torque);
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) hessian[(n - 3 + a) * n + n - 3 + b] = turn(a, b);
  return {n, dofs, moment, dlength, hessian};
}

// The path of an actuator on a site. Its wrench W is fixed to the body: m_j = S_j . W. The
// derivative dm_j/dq_k is S_j . (S_k x* W) if k does not move the axis of j, otherwise zero.
// (TRN-4)
Path site_path(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  int site = m.actuator_trnid[2 * actuator], body = m.site_bodyid[site];
  const Force wrench = site_wrench(m, d, site, m.actuator_gear + 6 * m.actuator_outadr[actuator]);

  // all dofs that move the body
  int n = 0;
  for (int i = last_dof(m, body); i >= 0; i = m.dof_parentid[i]) n++;
  int* dofs = arena.take<int>(n);
  double* moment = arena.take<double>(n);
  double* hessian = arena.zeros<double>(n * n);
  for (int i = last_dof(m, body), a = n - 1; i >= 0; i = m.dof_parentid[i], a--) {
    dofs[a] = i;
    moment[a] = dot(load_motion(d.cdof + 6 * i), wrench);
  }
  // derivative of the moment
  for (int b = 0; b < n; b++) {
    Force moved = cross(load_motion(d.cdof + 6 * dofs[b]), wrench);
    for (int a = 0; a < n; a++) {
      if (moves_axis(m, dofs[b], dofs[a])) continue;
      hessian[a * n + b] = dot(load_motion(d.cdof + 6 * dofs[a]), moved);
    }
  }
  return {n, dofs, moment, arena.zeros<double>(n), hessian};
}

// The path of a force and a torque on the motion of the first site relative to the second one. Both
// turn with site `turning`: m_j = f . (J_1 - J_2)_j + t . (w_1 - w_2)_j, zero if j moves both
// sites.                                                                                 (TRN-7)
Path relative_path(const ModelView& m, const DataView& d, const SitePair& p, Vec3 force,
                   Vec3 torque, int turning, Arena& arena) {
  const int n = p.n;
  double* moment = arena.zeros<double>(n);
  double* hessian = arena.zeros<double>(n * n);
  for (int a = 0; a < n; a++) {
    if (p.sign(a) == 0) continue;
    // moment
    const int j = p.dofs[a], side = p.mover(a);
    Vec3 slide = point_jacobian(d, p.point[side], j), turn = turn_axis(d, j);
    moment[a] = p.sign(a) * (dot(force, slide) + dot(torque, turn));
    // its derivative: force and torque turn, and the motion of the site changes
    for (int b = 0; b < n; b++) {
      const int k = p.dofs[b];
      Vec3 axis = turn_axis(d, k);
      double change = 0;
      if (p.moved(turning, b)) {
        change += dot(cross(axis, force), slide) + dot(cross(axis, torque), turn);
      }
      if (p.moved(side, b)) {
        change += dot(force, point_hessian(m, d, p.point[side], j, k));
        if (moves_axis(m, k, j)) change += dot(torque, cross(axis, turn));
      }
      hessian[a * n + b] = p.sign(a) * change;
    }
  }
  return {n, p.dofs, moment, arena.zeros<double>(n), hessian};
}

// The path of an actuator on a site with a reference site:
// l = g . R_r^T (p - p_r) + g' . log(R_r^T R)                                              (TRN-8)
Path reference_site_path(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  const int* id = m.actuator_trnid + 2 * actuator;
  const double* gear = m.actuator_gear + 6 * m.actuator_outadr[actuator];
  const SitePair p = site_pair(m, d, id[0], id[1], arena);
  const Mat3 site = load9(d.site_xmat + 9 * id[0]), reference = load9(d.site_xmat + 9 * id[1]);
  const Vec3 force = reference * load3(gear), torque = reference * load3(gear + 3);
  Path path = relative_path(m, d, p, force, torque, 1, arena);

  // dl/dq differs from the moment, because the frame of the reference site turns
  Vec3 span = load3(d.site_xpos + 3 * id[0]) - load3(d.site_xpos + 3 * id[1]);
  Mat3 log_rate = right_jacobian_inverse(relative_angle(m, d, p));
  Vec3 turn = site * transpose_mul(log_rate, load3(gear + 3));
  double* dlength = arena.zeros<double>(p.n);
  for (int k = 0; k < p.n; k++) {
    if (p.sign(k) == 0) continue;
    Vec3 axis = turn_axis(d, p.dofs[k]);
    Vec3 slide = point_jacobian(d, p.point[p.mover(k)], p.dofs[k]);
    dlength[k] = p.sign(k) * (dot(force, slide) + dot(turn, axis));
    if (p.moved(1, k)) dlength[k] += dot(cross(axis, force), span);
  }
  path.dlength = dlength;
  return path;
}

// The path of a slider-crank: l = s - sqrt(s^2 + rod^2 - v.v), where v points from the slider to
// the crank and s = axis . v. If the rod does not reach the axis, l = s.                 (TRN-9)
Path crank_path(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  // s and the root, at the current state
  const int* id = m.actuator_trnid + 2 * actuator;
  const double gear = m.actuator_gear[6 * m.actuator_outadr[actuator]];
  const double rod = m.actuator_cranklength[actuator];
  const SitePair p = site_pair(m, d, id[0], id[1], arena);
  const Vec3 axis = column(load9(d.site_xmat + 9 * id[1]), 2);
  const Vec3 v = load3(d.site_xpos + 3 * id[0]) - load3(d.site_xpos + 3 * id[1]);
  const double s = dot(axis, v), square = s * s + rod * rod - dot(v, v);
  // tie: rod of a crank
  if (square == 0) {
    throw Unsupported(element_name(m, object::kActuator, actuator),
                      "its rod just reaches the axis of the slider: its length has no derivative");
  }
  const double root = square > 0 ? std::sqrt(square) : 0;

  // first derivatives of v, axis, s and the root
  const int n = p.n;
  Vec3 *dv = arena.take<Vec3>(n), *daxis = arena.take<Vec3>(n);
  double *ds = arena.take<double>(n), *droot = arena.zeros<double>(n);
  double *moment = arena.take<double>(n), *hessian = arena.take<double>(n * n);
  for (int k = 0; k < n; k++) {
    dv[k] = daxis[k] = {0, 0, 0};
    if (p.moved(0, k)) dv[k] += point_jacobian(d, p.point[0], p.dofs[k]);
    if (p.moved(1, k)) {
      dv[k] += -point_jacobian(d, p.point[1], p.dofs[k]);
      daxis[k] = cross(turn_axis(d, p.dofs[k]), axis);
    }
    ds[k] = dot(daxis[k], v) + dot(axis, dv[k]);
    if (root > 0) droot[k] = (s * ds[k] - dot(v, dv[k])) / root;
    moment[k] = gear * (ds[k] - droot[k]);
  }

  // second derivatives
  for (int a = 0; a < n; a++)
    for (int b = 0; b < n; b++) {
      // of v and the axis, if both dofs move the same site
      const int j = p.dofs[a], k = p.dofs[b];
      Vec3 ddv{0, 0, 0}, ddaxis{0, 0, 0};
      if (p.moved(0, a) && p.moved(0, b)) ddv += point_hessian(m, d, p.point[0], j, k);
      if (p.moved(1, a) && p.moved(1, b)) {
        ddv += -point_hessian(m, d, p.point[1], j, k);
        ddaxis = moves_axis(m, k, j) ? cross(turn_axis(d, k), daxis[a])
                                     : cross(turn_axis(d, j), daxis[b]);
      }
      // of s, the root and the length
      double dds = dot(daxis[a], dv[b]) + dot(daxis[b], dv[a]) + dot(ddaxis, v) + dot(axis, ddv);
      double ddroot = 0;
      if (root > 0) {
        ddroot = (ds[a] * ds[b] + s * dds - dot(dv[a], dv[b]) - dot(v, ddv) - droot[a] * droot[b]) /
                 root;
      }
      hessian[a * n + b] = gear * (dds - ddroot);
    }
  return {n, p.dofs, moment, moment, hessian};
}

// The path of an adhesive body: minus the mean of the normal rows of its contacts, including
// contacts in the gap.                                                                  (TRN-10)
Path body_path(const ModelView& m, const DataView& d, int actuator, Arena& arena) {
  const AdhesiveContacts all = adhesive_contacts(m, d, m.actuator_trnid[2 * actuator], arena);
  // mean of the normal rows, and its derivative: that of J^T f for a unit normal force
  const int n = all.n;
  double* moment = arena.zeros<double>(n);
  double* hessian = arena.zeros<double>(n * n);
  for (int c = 0; c < all.count; c++) {
    const ContactDofs& at = all.chain[c];
    const ContactGeometry& g = all.geometry[c];
    const int stride = at.stride;
    double* change = arena.zeros<double>(at.n * stride);
    visit_maps(g, at, arena, [&](const ContactDofs& moved, const ContactMap& map) {
      turn_wrench(m, moved, map, {{0, 0, 0}, g.normal}, change, arena);
    });
    for (int a = 0; a < at.n; a++) {
      int i = all.local[at.dofs[a]];
      moment[i] -= at.sign(a) * dot(g.normal, at.axis[a].lin) / all.count;
      for (int b = 0; b < at.n; b++) {
        hessian[i * n + all.local[at.dofs[b]]] -= change[a * stride + b] / all.count;
      }
    }
  }
  return {n, all.dofs, moment, arena.zeros<double>(n), hessian};
}

}  // namespace

AdhesiveContacts adhesive_contacts(const ModelView& m, const DataView& d, int body, Arena& arena) {
  // the contacts of the body, with their features and dofs
  ContactDofs* contacts = arena.take<ContactDofs>(d.ncon);
  ContactGeometry* geometries = arena.take<ContactGeometry>(d.ncon);
  int* local = arena.zeros<int>(m.nv);
  int count = 0;
  for (int c = 0; c < d.ncon; c++) {
    ContactView contact = view_contact(d, c);
    const int* geom = contact.geom.v;
    if (geom[0] < 0 || geom[1] < 0 || contact.exclude > 1) continue;
    if (m.geom_bodyid[geom[0]] != body && m.geom_bodyid[geom[1]] != body) continue;
    new (geometries + count)
        ContactGeometry(identify(m, d, contact, count ? geometries + count - 1 : nullptr));
    require_features(m, contact, geometries[count]);
    contacts[count] = contact_dofs(m, d, contact, arena);
    for (int k = 0; k < contacts[count].n; k++) local[contacts[count].dofs[k]] = 1;
    count++;
  }

  // all dofs that move one of these contacts
  int* dofs = arena.take<int>(m.nv);
  int n = 0;
  for (int i = 0; i < m.nv; i++) {
    if (!local[i]) continue;
    local[i] = n;
    dofs[n++] = i;
  }
  return {count, contacts, geometries, n, dofs, local};
}

OrientationPath orientation_path(const ModelView& m, const DataView& d, int actuator,
                                 Arena& arena) {
  const int* id = m.actuator_trnid + 2 * actuator;
  OrientationPath o;
  // ball joint
  if (id[1] < 0) {
    int* dofs = arena.take<int>(3);
    double* unit = arena.zeros<double>(9);
    for (int k = 0; k < 3; k++) {
      dofs[k] = m.jnt_dofadr[id[0]] + k;
      unit[4 * k] = 1;
    }
    for (int k = 0; k < 3; k++) o.axis[k] = {3, dofs, unit + 3 * k, nullptr, nullptr};
    o.tangent = unit;
    return o;
  }

  // site and reference site
  const SitePair p = site_pair(m, d, id[0], id[1], arena);
  const Mat3 frame = load9(d.site_xmat + 9 * id[0]);
  double* tangent = arena.take<double>(3 * p.n);
  for (int k = 0; k < 3; k++) {
    o.axis[k] = relative_path(m, d, p, {0, 0, 0}, column(frame, k), 0, arena);
    for (int j = 0; j < p.n; j++) tangent[k * p.n + j] = o.axis[k].moment[j];
  }
  o.tangent = tangent;
  return o;
}

Path transmission_path(const ModelView& m, const DataView& d, int actuator, Path* tendon_paths,
                       Arena& arena) {
  const int* id = m.actuator_trnid + 2 * actuator;
  switch (m.actuator_trntype[actuator]) {
    case transmission::kTendon: {
      Path& path = tendon_paths[id[0]];
      if (path.n < 0) path = tendon_path(m, d, id[0], arena);
      return path;
    }
    case transmission::kSite:
      return id[1] < 0 ? site_path(m, d, actuator, arena)
                       : reference_site_path(m, d, actuator, arena);
    case transmission::kSliderCrank:
      return crank_path(m, d, actuator, arena);
    case transmission::kBody:
      return body_path(m, d, actuator, arena);
    default:
      return joint_path(m, d, actuator, arena);
  }
}

const char* transmission_refusal(const ModelView& m, int actuator) {
  int trn = m.actuator_trntype[actuator];
  if (trn < transmission::kJoint || trn > transmission::kSO3)
    return "its transmission is not supported";
  bool so3 = m.actuator_gaintype[actuator] == gain::kSO3;
  if ((trn == transmission::kSO3) != so3)
    return "its combination of gain and transmission is not supported";
  return nullptr;
}

}  // namespace mujacobian

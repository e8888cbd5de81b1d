// Equality constraints: connect, weld, and polynomial couplings of joints or tendons.
#include <cmath>

#include "constraint/wrench.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "spatial/quaternion.h"
#include "tree/point.h"

namespace mujacobian {
namespace {

// Two material points that are held together, for a weld also two frames.
struct PointEquality {
  Point point[2];
  bool weld;
  double scale;      // torquescale
  Mat3 frame1;       // of the second body or site
  Quaternion error;  // conj(q_1) q_0 relpose
};

PointEquality point_equality(const ModelView& m, const DataView& d, int eq) {
  PointEquality h;
  h.weld = m.eq_type[eq] == equality::kWeld;
  const double* data = m.eq_data + engine().eq_stride * eq;
  int object[2] = {m.eq_obj1id[eq], m.eq_obj2id[eq]};
  bool bodies = m.eq_objtype[eq] == object::kBody;
  Quaternion q[2];
  for (int s = 0; s < 2; s++) {
    int body = bodies ? object[s] : m.site_bodyid[object[s]];
    q[s] = load_quaternion(d.xquat + 4 * body);
    if (bodies) {
      // connect: anchors 0, 1; weld: anchors 1, 0
      Vec3 local = load3(data + 3 * (h.weld ? 1 - s : s));
      double p[3];
      store3(p, load3(d.xpos + 3 * body) + load9(d.xmat + 9 * body) * local);
      h.point[s] = make_point(m, d, body, p);
    } else {
      h.point[s] = make_point(m, d, body, d.site_xpos + 3 * object[s]);
      q[s] = q[s] * load_quaternion(m.site_quat + 4 * object[s]);
    }
  }
  if (h.weld) {
    h.scale = data[10];
    if (bodies) q[0] = q[0] * load_quaternion(data + 6);
    h.error = conjugate(q[1]) * q[0];
    h.frame1 = bodies ? load9(d.xmat + 9 * object[1]) : load9(d.site_xmat + 9 * object[1]);
  }
  return h;
}

// Rotation rows of a weld for a relative angular motion u in the second frame:
//   r(e, u) = scale/2 (e_w u + u x e_v)                                                 (ROW-7)
Vec3 weld_row(const PointEquality& h, Quaternion e, Vec3 u) {
  return (h.scale / 2) * (e.w * u + cross(u, e.v));
}
// Torque on the first body of forces f in these rows, in the second frame: the transpose
Vec3 weld_torque(const PointEquality& h, Quaternion e, Vec3 f) {
  return (h.scale / 2) * (e.w * f + cross(e.v, f));
}
// change of the error quaternion under a relative rotation u
Quaternion error_rate(Quaternion e, Vec3 u) {
  return {-0.5 * dot(u, e.v), 0.5 * (e.w * u + cross(u, e.v))};
}

// Angular velocity and acceleration (at zero joint acceleration) of the two bodies, or changes of
// them.
struct Spin {
  Vec3 velocity[2], acceleration[2];
};

// d(Jdot v) of the rotation rows when the spins change by `ds`, the second frame turns by `turn`
// and the error changes by `de`                                                             (ROW-8)
Vec3 weld_bias_change(const PointEquality& h, const Spin& s, const Spin& ds, Vec3 turn,
                      Quaternion de) {
  auto local = [&](Vec3 v) { return transpose_mul(h.frame1, v); };
  Vec3 relative = s.velocity[0] - s.velocity[1], drelative = ds.velocity[0] - ds.velocity[1];
  Vec3 acceleration = s.acceleration[0] - s.acceleration[1] - cross(s.velocity[1], relative);
  Vec3 dacceleration = ds.acceleration[0] - ds.acceleration[1] - cross(ds.velocity[1], relative) -
                       cross(s.velocity[1], drelative);
  Vec3 u = local(relative), du = local(drelative - cross(turn, relative));
  Vec3 udot = local(acceleration), dudot = local(dacceleration - cross(turn, acceleration));
  Quaternion e = h.error, edot = error_rate(e, u);
  Quaternion dedot = {-0.5 * (dot(du, e.v) + dot(u, de.v)),
                      0.5 * (de.w * u + e.w * du + cross(du, e.v) + cross(u, de.v))};
  return weld_row(h, dedot, u) + weld_row(h, edot, du) + weld_row(h, de, udot) +
         weld_row(h, e, dudot);
}

void make_point_equality(const ModelView& m, const DataView& d, Block& b, Arena& arena) {
  const PointEquality h = point_equality(m, d, b.id);
  b.count = b.edges = h.weld ? 6 : 3;
  int* dofs = arena.take<int>(m.nv);
  int n = merge_chains(m, h.point[0].body, h.point[1].body, dofs);
  take_jacobian(b, n, dofs, arena);
  for (int side = 0; side < 2; side++) {
    double sign = side ? -1 : 1;
    int at = last_dof(m, h.point[side].body);
    for (int k = b.n - 1; k >= 0; k--) {
      if (b.dofs[k] != at) continue;
      at = m.dof_parentid[at];
      double row[6];
      store3(row, point_jacobian(d, h.point[side], b.dofs[k]));
      if (h.weld) {
        Vec3 w = load3(d.cdof + 6 * b.dofs[k]);
        store3(row + 3, weld_row(h, h.error, transpose_mul(h.frame1, w)));
      }
      for (int r = 0; r < b.count; r++) b.J[r * b.stride + k] += sign * row[r];
    }
  }
}

void differentiate_point_equality(const ModelView& m, const DataView& d, const Block& b,
                                  const BlockMotion& motion, BlockChange& change) {
  const PointEquality h = point_equality(m, d, b.id);
  const int n = b.n;
  const Reference ref = reference(m, d, b.row);
  const double* pos = d.efc_pos + b.row;
  double length = 0;
  for (int r = 0; r < b.count; r++) length += pos[r] * pos[r];
  length = std::sqrt(length);

  // common quantities of the two sides
  Vec3 force = load3(b.force), twist{0, 0, 0}, relative{0, 0, 0};
  Vec3 torque{0, 0, 0};  // of a weld, on the first body
  Spin spin{};
  Motion y[2];
  for (int s = 0; s < 2; s++) {
    int body = h.point[s].body;
    Motion v = load_motion(d.cvel + 6 * body);
    y[s] = motion.moved[body] + ref.damping * v;
    spin.velocity[s] = v.ang;
    spin.acceleration[s] = motion.velocity.acceleration[body].ang;
  }
  relative = y[0].ang - y[1].ang;
  if (h.weld) {
    twist = load3(b.force + 3);
    torque = h.frame1 * weld_torque(h, h.error, twist);
  }

  int at[2] = {last_dof(m, h.point[0].body), last_dof(m, h.point[1].body)};
  for (int k = n - 1; k >= 0; k--) {
    const int dof = b.dofs[k];
    bool moves[2];
    for (int s = 0; s < 2; s++) {
      moves[s] = at[s] == dof;
      if (moves[s]) at[s] = m.dof_parentid[at[s]];
    }
    Motion axis = dof_axis(d, dof), axis_dot = load_motion(d.cdof_dot + 6 * dof);
    Motion rate = motion.moved_rate[dof] + ref.damping * axis_dot;

    // changes of the two sides with q_k and v_k
    double rho_q[6] = {}, rho_v[6] = {};
    Vec3 lin_q{0, 0, 0}, lin_v{0, 0, 0}, ang{0, 0, 0};
    Spin spin_q{}, spin_v{};
    for (int s = 0; s < 2; s++) {
      if (!moves[s]) continue;
      double sign = s ? -1 : 1;
      Point p = h.point[s];
      Motion dy = cross(axis, y[s]) + rate;
      Vec3 moved = at_point(axis, p.offset);
      PointMotion dq = point_motion_dq(d, motion.velocity, p, dof);
      PointMotion dv = point_motion_dv(d, motion.velocity, p, dof);
      lin_q += sign * (at_point(dy, p.offset) + cross(y[s].ang, moved) + ref.bias * dq.a);
      lin_v += sign * (ref.damping * moved + ref.bias * dv.a);
      ang += sign * dy.ang;
      Motion v = load_motion(d.cvel + 6 * p.body), a = motion.velocity.acceleration[p.body];
      spin_q.velocity[s] = velocity_dq(axis, axis_dot, v).ang;
      spin_q.acceleration[s] =
          acceleration_dq(axis, axis_dot, motion.velocity.rates[dof], v, a).ang;
      spin_v.velocity[s] = axis.ang;
      spin_v.acceleration[s] = acceleration_dv(axis, motion.velocity.rates[dof], v).ang;
    }
    store3(rho_q, lin_q), store3(rho_v, lin_v);

    Vec3 turn = moves[1] ? axis.ang : Vec3{0, 0, 0};
    Vec3 apart = (moves[0] ? axis.ang : Vec3{0, 0, 0}) - turn;
    Vec3 dtorque{0, 0, 0};
    if (h.weld) {
      Quaternion de = error_rate(h.error, transpose_mul(h.frame1, apart));
      Vec3 u = transpose_mul(h.frame1, relative);
      Vec3 du = transpose_mul(h.frame1, ang - cross(turn, relative));
      store3(rho_q + 3, weld_row(h, de, u) + weld_row(h, h.error, du) +
                            ref.bias * weld_bias_change(h, spin, spin_q, turn, de));
      store3(rho_v + 3,
             ref.damping * weld_row(h, h.error, transpose_mul(h.frame1, apart)) +
                 ref.bias * weld_bias_change(h, spin, spin_v, {0, 0, 0}, {0, {0, 0, 0}}));
      dtorque = cross(turn, torque) + h.frame1 * weld_torque(h, de, twist);
    }

    // reference: stiffness (imp pos), the impedance through the norm of all rows
    double dlength = 0;
    for (int r = 0; r < b.count && length > 0; r++)
      dlength += pos[r] * b.J[r * b.stride + k] / length;
    for (int r = 0; r < b.count; r++) {
      double through = ref.through(pos[r], d.efc_vel[b.row + r], d.efc_aref[b.row + r]);
      double pull = ref.stiffness * b.J[r * b.stride + k] + through * dlength;
      change.rho_q[r * b.stride + k] = rho_q[r] + pull;
      change.rho_v[r * b.stride + k] = rho_v[r];
    }
    change.dlogD[k] = ref.dlogD * dlength;

    // d(J^T f)
    int row[2] = {last_dof(m, h.point[0].body), last_dof(m, h.point[1].body)};
    for (int j = n - 1; j >= 0; j--) {
      int other = b.dofs[j];
      for (int s = 0; s < 2; s++) {
        if (row[s] != other) continue;
        row[s] = m.dof_parentid[row[s]];
        double value = 0;
        Vec3 w = load3(d.cdof + 6 * other);
        if (moves[s]) {
          value += dot(force, point_hessian(m, d, h.point[s], other, dof));
          if (moves_axis(m, dof, other)) value += dot(cross(axis.ang, w), torque);
        }
        value += dot(w, dtorque);
        change.turned[j * b.stride + k] += s ? -value : value;
      }
    }
  }
}

}  // namespace

Polynomial polynomial(const ModelView& m, const DataView& d, int eq) {
  if (m.eq_obj2id[eq] < 0) return {0, 0};
  const double* c = m.eq_data + engine().eq_stride * eq;
  int id = m.eq_obj2id[eq];
  double x;
  if (m.eq_type[eq] == equality::kJoint) {
    int adr = m.jnt_qposadr[id];
    x = d.qpos[adr] - m.qpos0[adr];
  } else {
    x = d.ten_length[id] - m.tendon_length0[id];
  }
  return {c[1] + x * (2 * c[2] + x * (3 * c[3] + x * 4 * c[4])),
          2 * c[2] + x * (6 * c[3] + x * 12 * c[4])};
}

namespace {

Path coupled_path(const ModelView& m, const DataView& d, int eq, int id, Arena& arena) {
  if (id < 0) return {0, nullptr, nullptr, nullptr, nullptr};
  if (m.eq_type[eq] == equality::kJoint) {
    static const double one = 1;
    return {1, m.jnt_dofadr + id, &one, &one, nullptr};
  }
  return tendon_path(m, d, id, arena);
}

void make_coupling(const ModelView& m, const DataView& d, Block& b, Arena& arena) {
  b.count = b.edges = 1;
  b.path[0] = coupled_path(m, d, b.id, m.eq_obj1id[b.id], arena);
  b.path[1] = coupled_path(m, d, b.id, m.eq_obj2id[b.id], arena);
  int* dofs = arena.take<int>(b.path[0].n + b.path[1].n);
  int i = 0, j = 0, n = 0;
  while (i < b.path[0].n || j < b.path[1].n) {
    int a = i < b.path[0].n ? b.path[0].dofs[i] : m.nv;
    int c = j < b.path[1].n ? b.path[1].dofs[j] : m.nv;
    dofs[n++] = a < c ? a : c;
    i += a <= c, j += c <= a;
  }
  take_jacobian(b, n, dofs, arena);
  Polynomial p = polynomial(m, d, b.id);
  for (int s = 0; s < 2; s++) {
    const Path& path = b.path[s];
    for (int k = 0, at = 0; k < path.n; k++) {
      while (b.dofs[at] != path.dofs[k]) at++;
      b.J[at] += s ? -p.slope * path.moment[k] : path.moment[k];
    }
  }
}

void differentiate_coupling(const ModelView& m, const DataView& d, const Block& b,
                            const BlockMotion& motion, BlockChange& change, Arena& arena) {
  const Reference r = reference(m, d, b.row);
  const double pull = r.stiffness + r.through(d.efc_pos[b.row] - d.efc_margin[b.row],
                                              d.efc_vel[b.row], d.efc_aref[b.row]);
  const int n = b.n;
  for (int k = 0; k < n; k++) change.rho_v[k] = r.damping * b.J[k];
  Polynomial p = polynomial(m, d, b.id);
  int* place = arena.take<int>(n);
  for (int s = 0; s < 2; s++) {
    const Path& path = b.path[s];
    for (int k = 0, at = 0; k < path.n; k++) {
      while (b.dofs[at] != path.dofs[k]) at++;
      place[k] = at;
      double dpos = (s ? -p.slope : 1) * path.dlength[k];
      change.rho_q[at] += pull * dpos;
      change.dlogD[at] += r.dlogD * dpos;
    }
    for (int i = 0; i < path.n; i++) {
      for (int k = 0; k < path.n; k++) {
        double h = path.hessian ? path.hessian[i * path.n + k] : 0;
        if (s) h = -p.slope * h - p.curvature * path.moment[i] * path.dlength[k];
        change.turned[place[i] * b.stride + place[k]] += b.force[0] * h;
        change.rho_q[place[k]] += h * (motion.acc[path.dofs[i]] + r.damping * d.qvel[path.dofs[i]]);
      }
    }
  }
}

}  // namespace

void make_equality(const ModelView& m, const DataView& d, Block& b, Arena& arena) {
  switch (m.eq_type[b.id]) {
    case equality::kConnect:
    case equality::kWeld:
      return make_point_equality(m, d, b, arena);
    case equality::kJoint:
    case equality::kTendon:
      return make_coupling(m, d, b, arena);
    default:
      throw Unsupported(element_name(m, object::kEquality, b.id), "flexible bodies");
  }
}

void differentiate_equality(const ModelView& m, const DataView& d, const Block& b,
                            const BlockMotion& motion, BlockChange& change, Arena& arena) {
  if (m.eq_type[b.id] == equality::kConnect || m.eq_type[b.id] == equality::kWeld) {
    return differentiate_point_equality(m, d, b, motion, change);
  }
  differentiate_coupling(m, d, b, motion, change, arena);
}

BlockWrench point_equality_wrench(const ModelView& m, const DataView& d, const Block& b,
                                  Arena& arena) {
  const PointEquality h = point_equality(m, d, b.id);
  BlockWrench w{};
  for (int r = 0; r < b.count; r++) {
    const Vec3 e = {r % 3 == 0 ? 1. : 0., r % 3 == 1 ? 1. : 0., r % 3 == 2 ? 1. : 0.};
    w.unit[r] = r < 3 ? Force{{0, 0, 0}, e} : Force{h.frame1 * weld_torque(h, h.error, e), {}};
    w.value += b.force[r] * w.unit[r];
  }
  for (int s = 0; s < 2; s++) {
    const int body = h.point[s].body;
    w.body[s] = body;
    w.sign[s] = s ? -1 : 1;
    w.at[s] = h.point[s].offset + load3(d.subtree_com + 3 * m.body_rootid[body]);
    w.change[s] = arena.take<Force>(b.n);
  }

  const Vec3 twist = h.weld ? load3(b.force + 3) : Vec3{0, 0, 0};
  int at[2] = {last_dof(m, h.point[0].body), last_dof(m, h.point[1].body)};
  for (int k = b.n - 1; k >= 0; k--) {
    Vec3 turn[2] = {}, moved[2] = {};
    for (int s = 0; s < 2; s++) {
      if (at[s] != b.dofs[k]) continue;
      at[s] = m.dof_parentid[at[s]];
      turn[s] = dof_axis(d, b.dofs[k]).ang;
      moved[s] = point_jacobian(d, h.point[s], b.dofs[k]);
    }
    Vec3 torque{0, 0, 0};
    if (h.weld) {
      const Quaternion de = error_rate(h.error, transpose_mul(h.frame1, turn[0] - turn[1]));
      torque = cross(turn[1], w.value.ang) + h.frame1 * weld_torque(h, de, twist);
    }
    for (int s = 0; s < 2; s++) {
      w.change[s][k] = {torque + cross(moved[s], w.value.lin), {0, 0, 0}};
    }
  }
  return w;
}

}  // namespace mujacobian

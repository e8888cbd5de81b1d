// Equality constraints of two material points: connect and weld.
#include <cmath>

#include "constraint/point_equality.h"
#include "constraint/wrench.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// Returns the rotation rows of a weld for a relative angular motion u in the second frame:
//   r(e, u) = scale/2 (e_w u + u x e_v)                                                 (ROW-7)
Vec3 weld_row(const PointEquality& h, Quaternion e, Vec3 u) {
  return (h.scale / 2) * (e.w * u + cross(u, e.v));
}
// Returns the torque on the first body, in the second frame, of forces f in these rows.
Vec3 weld_torque(const PointEquality& h, Quaternion e, Vec3 f) {
  return (h.scale / 2) * (e.w * f + cross(e.v, f));
}
// Returns the change of the error quaternion with a relative rotation u.
Quaternion error_rate(Quaternion e, Vec3 u) {
  return {-0.5 * dot(u, e.v), 0.5 * (e.w * u + cross(u, e.v))};
}

// Angular velocities and accelerations of the two bodies at zero joint acceleration, or their
// changes.
struct Spin {
  Vec3 velocity[2], acceleration[2];
};

// Returns d(Jdot v) of the rotation rows if the spins change by `ds`, the second frame turns by
// `turn` and the error changes by `de`.                                                  (ROW-8)
Vec3 weld_bias_change(const PointEquality& h, const Spin& s, const Spin& ds, Vec3 turn,
                      Quaternion de) {
  auto local = [&](Vec3 v) { return transpose_mul(h.frame1, v); };
  Vec3 relative = s.velocity[0] - s.velocity[1], drelative = ds.velocity[0] - ds.velocity[1];
  Vec3 acceleration = s.acceleration[0] - s.acceleration[1] - cross(s.velocity[1], relative);
  Vec3 dacceleration = ds.acceleration[0] - ds.acceleration[1] - cross(ds.velocity[1], relative) -
                       cross(s.velocity[1], drelative);

  // relative motion and error in the second frame, and their rates
  Vec3 u = local(relative), du = local(drelative - cross(turn, relative));
  Vec3 udot = local(acceleration), dudot = local(dacceleration - cross(turn, acceleration));
  Quaternion e = h.error, edot = error_rate(e, u);
  Quaternion dedot = {-0.5 * (dot(du, e.v) + dot(u, de.v)),
                      0.5 * (de.w * u + e.w * du + cross(du, e.v) + cross(u, de.v))};
  return weld_row(h, dedot, u) + weld_row(h, edot, du) + weld_row(h, de, udot) +
         weld_row(h, e, dudot);
}

// The state of a point equality at which its rows are differentiated.
struct PointEqualityState {
  PointEquality equality;
  ReferenceAcceleration ref;
  Motion y[2];    // motions a + B v of the two bodies
  Vec3 relative;  // angular motion of the first body relative to the second one, of y
  Spin spin;
  Vec3 force;   // of the point rows
  Vec3 twist;   // of the rotation rows of a weld
  Vec3 torque;  // of a weld on the first body, in world axes
};

PointEqualityState point_equality_state(const ModelView& m, const DataView& d, const Block& b,
                                        const BlockMotion& motion) {
  PointEqualityState e{};
  e.equality = point_equality(m, d, b.id);
  const PointEquality& h = e.equality;
  e.ref = reference_acceleration(m, d, b);
  for (int s = 0; s < 2; s++) {
    int body = h.point[s].body;
    Motion v = load_motion(d.cvel + 6 * body);
    e.y[s] = motion.moved[body] + e.ref.damping * v;
    e.spin.velocity[s] = v.ang;
    e.spin.acceleration[s] = motion.velocity.acceleration[body].ang;
  }
  e.relative = e.y[0].ang - e.y[1].ang;
  e.force = load3(b.force);
  if (h.weld) {
    e.twist = load3(b.force + 3);
    e.torque = h.frame1 * weld_torque(h, h.error, e.twist);
  }
  return e;
}

// One dof and the bodies of the equality that it moves.
struct MovingDof {
  int dof;
  bool moves[2];
  Motion axis, axis_dot;

  // rotation of the second body, and of the first body relative to it
  Vec3 turn() const { return moves[1] ? axis.ang : Vec3{0, 0, 0}; }
  Vec3 apart() const { return (moves[0] ? axis.ang : Vec3{0, 0, 0}) - turn(); }
};

// Calls visit(k, dof) for the dofs of the block, the last one first.
template <class F>
void visit_moving_dofs(const ModelView& m, const DataView& d, const Block& b,
                       const PointEquality& h, F visit) {
  int at[2] = {last_dof(m, h.point[0].body), last_dof(m, h.point[1].body)};
  for (int k = b.n - 1; k >= 0; k--) {
    const int dof = b.dofs[k];
    MovingDof moving{dof, {}, dof_axis(d, dof), load_motion(d.cdof_dot + 6 * dof)};
    for (int s = 0; s < 2; s++) {
      moving.moves[s] = at[s] == dof;
      if (moving.moves[s]) at[s] = m.dof_parentid[at[s]];
    }
    visit(k, moving);
  }
}

// rho of the rows with respect to one position and one velocity, without the terms that depend on
// the positions of the rows.
struct RowChange {
  double q[6], v[6];
};

// Computes the three point rows: d(J y + bias Jdot v) of the difference of the two points.
void point_row_change(const DataView& d, const PointEqualityState& e, const BlockMotion& motion,
                      const MovingDof& dof, RowChange& rho) {
  const Motion rate = motion.moved_rate[dof.dof] + e.ref.damping * dof.axis_dot;
  Vec3 lin_q{0, 0, 0}, lin_v{0, 0, 0};
  for (int s = 0; s < 2; s++) {
    if (!dof.moves[s]) continue;
    double sign = s ? -1 : 1;
    Point p = e.equality.point[s];
    Motion dy = cross(dof.axis, e.y[s]) + rate;
    Vec3 moved = at_point(dof.axis, p.offset);
    PointMotion dq = point_motion_dq(d, motion.velocity, p, dof.dof);
    PointMotion dv = point_motion_dv(d, motion.velocity, p, dof.dof);
    lin_q += sign * (at_point(dy, p.offset) + cross(e.y[s].ang, moved) + e.ref.bias * dq.a);
    lin_v += sign * (e.ref.damping * moved + e.ref.bias * dv.a);
  }
  store3(rho.q, lin_q), store3(rho.v, lin_v);
}

// Computes the three rotation rows of a weld: d(r(e, u) + bias Jdot v).              (ROW-7, ROW-8)
void weld_row_change(const DataView& d, const PointEqualityState& e, const BlockMotion& motion,
                     const MovingDof& dof, RowChange& rho) {
  const PointEquality& h = e.equality;
  const ReferenceAcceleration& ref = e.ref;
  const Motion rate = motion.moved_rate[dof.dof] + ref.damping * dof.axis_dot;

  // changes of the angular motions of the two bodies with q and v of the dof
  Vec3 ang{0, 0, 0};
  Spin spin_q{}, spin_v{};
  for (int s = 0; s < 2; s++) {
    if (!dof.moves[s]) continue;
    double sign = s ? -1 : 1;
    Motion dy = cross(dof.axis, e.y[s]) + rate;
    ang += sign * dy.ang;
    const int body = h.point[s].body;
    const DofRates& rates = motion.velocity.rates[dof.dof];
    Motion v = load_motion(d.cvel + 6 * body), a = motion.velocity.acceleration[body];
    spin_q.velocity[s] = velocity_dq(dof.axis, dof.axis_dot, v).ang;
    spin_q.acceleration[s] = acceleration_dq(dof.axis, dof.axis_dot, rates, v, a).ang;
    spin_v.velocity[s] = dof.axis.ang;
    spin_v.acceleration[s] = acceleration_dv(dof.axis, rates, v).ang;
  }

  // the rows with the error quaternion, the relative motion and the second frame
  const Vec3 turn = dof.turn(), apart = transpose_mul(h.frame1, dof.apart());
  Quaternion de = error_rate(h.error, apart);
  Vec3 u = transpose_mul(h.frame1, e.relative);
  Vec3 du = transpose_mul(h.frame1, ang - cross(turn, e.relative));
  store3(rho.q + 3, weld_row(h, de, u) + weld_row(h, h.error, du) +
                        ref.bias * weld_bias_change(h, e.spin, spin_q, turn, de));
  store3(rho.v + 3, ref.damping * weld_row(h, h.error, apart) +
                        ref.bias * weld_bias_change(h, e.spin, spin_v, {0, 0, 0}, {0, {0, 0, 0}}));
}

// Writes column k of rho and dlogD. The stiffness acts on the position of each row, and the
// impedance of all rows depends on the norm of their positions.
void write_row_change(const DataView& d, const Block& b, const ReferenceAcceleration& ref,
                      double length, int k, const RowChange& rho, BlockChange& change) {
  const double* pos = d.efc_pos + b.row;
  double dlength = 0;
  for (int r = 0; r < b.count && length > 0; r++)
    dlength += pos[r] * b.J[r * b.stride + k] / length;
  for (int r = 0; r < b.count; r++) {
    double through = ref.through(pos[r], d.efc_vel[b.row + r], d.efc_aref[b.row + r]);
    double through_position = ref.stiffness * b.J[r * b.stride + k] + through * dlength;
    change.rho_q[r * b.stride + k] = rho.q[r] + through_position;
    change.rho_v[r * b.stride + k] = rho.v[r];
  }
  change.dlogD[k] = ref.dlogD * dlength;
}

// Adds column k of d(J^T f)/dq at fixed f.
void add_force_change(const ModelView& m, const DataView& d, const Block& b,
                      const PointEqualityState& e, int k, const MovingDof& moving,
                      BlockChange& change) {
  // the torque of a weld turns with the second frame, and changes with the error
  const PointEquality& h = e.equality;
  Vec3 dtorque{0, 0, 0};
  if (h.weld) {
    Quaternion de = error_rate(h.error, transpose_mul(h.frame1, moving.apart()));
    dtorque = cross(moving.turn(), e.torque) + h.frame1 * weld_torque(h, de, e.twist);
  }

  // rows of the dofs that move either body: the axis of the row, and the point on it, may move
  visit_moving_dofs(m, d, b, h, [&](int j, const MovingDof& row) {
    const Vec3 w = row.axis.ang;
    for (int s = 0; s < 2; s++) {
      if (!row.moves[s]) continue;
      double value = 0;
      if (moving.moves[s]) {
        value += dot(e.force, point_hessian(m, d, h.point[s], row.dof, moving.dof));
        if (moves_axis(m, moving.dof, row.dof)) {
          value += dot(cross(moving.axis.ang, w), e.torque);
        }
      }
      value += dot(w, dtorque);
      change.geometric_stiffness[j * b.stride + k] += s ? -value : value;
    }
  });
}

}  // namespace

PointEquality point_equality(const ModelView& m, const DataView& d, int eq) {
  PointEquality h;
  h.weld = m.eq_type[eq] == equality::kWeld;
  const double* data = m.eq_data + engine().eq_stride * eq;
  int object[2] = {m.eq_obj1id[eq], m.eq_obj2id[eq]};
  bool bodies = m.eq_objtype[eq] == object::kBody;

  // the two points, and the orientations of their bodies or sites
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

  // the relative orientation of a weld
  if (h.weld) {
    h.scale = data[10];
    if (bodies) q[0] = q[0] * load_quaternion(data + 6);
    h.error = conjugate(q[1]) * q[0];
    h.frame1 = bodies ? load9(d.xmat + 9 * object[1]) : load9(d.site_xmat + 9 * object[1]);
  }
  return h;
}

RotationRows rotation_rows(const ModelView& m, const DataView& d, const Block& b,
                           const BlockMotion& motion, const PointEquality& h, double* jacobian) {
  visit_moving_dofs(m, d, b, h, [&](int k, const MovingDof& dof) {
    double row[3];
    store3(row, weld_row(h, h.error, transpose_mul(h.frame1, dof.apart())));
    for (int r = 0; r < 3; r++) jacobian[r * b.stride + k] = row[r];
  });
  Vec3 velocity[2], acceleration[2];
  for (int s = 0; s < 2; s++) {
    velocity[s] = load_motion(d.cvel + 6 * h.point[s].body).ang;
    acceleration[s] = motion.velocity.acceleration[h.point[s].body].ang;
  }
  const Vec3 relative = velocity[0] - velocity[1];
  const Vec3 u = transpose_mul(h.frame1, relative);
  const Vec3 udot =
      transpose_mul(h.frame1, acceleration[0] - acceleration[1] - cross(velocity[1], relative));
  RotationRows rows;
  store3(rows.pos, h.scale * h.error.v);
  store3(rows.bias, weld_row(h, error_rate(h.error, u), u) + weld_row(h, h.error, udot));
  return rows;
}

void make_point_equality(const ModelView& m, const DataView& d, Block& b, Arena& arena) {
  const PointEquality h = point_equality(m, d, b.id);
  b.count = b.edges = h.weld ? 6 : 3;
  int* dofs = arena.take<int>(m.nv);
  int n = merge_chains(m, h.point[0].body, h.point[1].body, dofs);
  take_jacobian(b, n, dofs, arena);
  visit_moving_dofs(m, d, b, h, [&](int k, const MovingDof& dof) {
    for (int s = 0; s < 2; s++) {
      if (!dof.moves[s]) continue;
      double row[6], sign = s ? -1 : 1;
      store3(row, at_point(dof.axis, h.point[s].offset));
      if (h.weld) {
        store3(row + 3, weld_row(h, h.error, transpose_mul(h.frame1, dof.axis.ang)));
      }
      for (int r = 0; r < b.count; r++) b.J[r * b.stride + k] += sign * row[r];
    }
  });
}

void differentiate_point_equality(const ModelView& m, const DataView& d, const Block& b,
                                  const BlockMotion& motion, BlockChange& change) {
  const PointEqualityState e = point_equality_state(m, d, b, motion);
  double length = 0;  // of the vector of all positions
  for (int r = 0; r < b.count; r++) length += d.efc_pos[b.row + r] * d.efc_pos[b.row + r];
  length = std::sqrt(length);
  visit_moving_dofs(m, d, b, e.equality, [&](int k, const MovingDof& dof) {
    RowChange rho{};
    point_row_change(d, e, motion, dof, rho);
    if (e.equality.weld) weld_row_change(d, e, motion, dof, rho);
    write_row_change(d, b, e.ref, length, k, rho, change);
    add_force_change(m, d, b, e, k, dof, change);
  });
}

BlockWrench point_equality_wrench(const ModelView& m, const DataView& d, const Block& b,
                                  Arena& arena) {
  // the wrench of each row, and their sum
  const PointEquality h = point_equality(m, d, b.id);
  BlockWrench w{};
  for (int r = 0; r < b.count; r++) {
    const Vec3 e = {r % 3 == 0 ? 1. : 0., r % 3 == 1 ? 1. : 0., r % 3 == 2 ? 1. : 0.};
    w.unit[r] = r < 3 ? Force{{0, 0, 0}, e} : Force{h.frame1 * weld_torque(h, h.error, e), {}};
    w.value += b.force[r] * w.unit[r];
  }
  // the two bodies, with opposite wrenches at their points
  for (int s = 0; s < 2; s++) {
    const int body = h.point[s].body;
    w.body[s] = body;
    w.sign[s] = s ? -1 : 1;
    w.at[s] = h.point[s].offset + load3(d.subtree_com + 3 * m.body_rootid[body]);
    w.change[s] = arena.take<Force>(b.n);
  }

  const Vec3 twist = h.weld ? load3(b.force + 3) : Vec3{0, 0, 0};
  // change of the wrench with each dof: the torque of a weld turns, and the points move
  visit_moving_dofs(m, d, b, h, [&](int k, const MovingDof& dof) {
    Vec3 turn[2] = {}, moved[2] = {};
    for (int s = 0; s < 2; s++) {
      if (!dof.moves[s]) continue;
      turn[s] = dof.axis.ang;
      moved[s] = at_point(dof.axis, h.point[s].offset);
    }
    Vec3 torque{0, 0, 0};
    if (h.weld) {
      const Quaternion de = error_rate(h.error, transpose_mul(h.frame1, turn[0] - turn[1]));
      torque = cross(turn[1], w.value.ang) + h.frame1 * weld_torque(h, de, twist);
    }
    for (int s = 0; s < 2; s++) {
      w.change[s][k] = {torque + cross(moved[s], w.value.lin), {0, 0, 0}};
    }
  });
  return w;
}

}  // namespace mujacobian

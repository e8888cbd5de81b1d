// Contacts: rows (normal, tangent 1, tangent 2, spin, roll 1, roll 2) of the relative motion of the
// two bodies at the contact point.
#include "constraint/block.h"
#include "layout/enums.h"
#include "smooth/unsupported.h"

namespace mujacobian {
namespace {

// The two bodies of a contact and the motions of one dof about its position.
struct Sides {
  int body[2];
  Vec3 offset[2];  // of the contact from the reference point of each body's tree
  int last[2];     // last dof that moves each body
};

Sides sides(const ModelView& m, const DataView& d, const Block& b) {
  Sides s;
  Vec3 p = load3(b.contact.pos.v);
  for (int k = 0; k < 2; k++) {
    s.body[k] = m.geom_bodyid[b.contact.geom.v[k]];
    s.offset[k] = p - load3(d.subtree_com + 3 * m.body_rootid[s.body[k]]);
    s.last[k] = last_dof(m, s.body[k]);
  }
  return s;
}

Motion about(Motion v, Vec3 offset) { return {v.ang, at_point(v, offset)}; }

// dof moves the body whose last dof is `last`: walk the chains of both bodies downwards together
struct ChainWalk {
  const ModelView& m;
  int at;
  bool next(int dof) {  // dofs must come in decreasing order
    if (at != dof) return false;
    at = m.dof_parentid[at];
    return true;
  }
};

Vec3 axis(const ContactGeometry& g, int row) {
  int k = row % 3;
  return k == 0 ? g.normal : g.tangent[k - 1];
}

}  // namespace

void make_contact(const ModelView& m, const DataView& d, Block& b, Arena& arena) {
  b.contact = view_contact(d, b.id);
  b.count = b.contact.dim;
  b.edges = b.type == constraint::kContactPyramidal ? 2 * (b.count - 1) : b.count;
  b.geometry = arena.take<ContactGeometry>(1);
  *b.geometry = identify(m, d, b.contact);

  const Sides s = sides(m, d, b);
  int* dofs = arena.take<int>(m.nv);
  b.n = merge_chains(m, s.body[0], s.body[1], dofs);
  b.dofs = dofs;
  b.J = arena.take<double>(b.count * b.n);
  ChainWalk walk[2] = {{m, s.last[0]}, {m, s.last[1]}};
  for (int k = b.n - 1; k >= 0; k--) {
    Motion dof = load_motion(d.cdof + 6 * b.dofs[k]);
    bool moves[2] = {walk[0].next(b.dofs[k]), walk[1].next(b.dofs[k])};
    Vec3 lin{0, 0, 0}, ang{0, 0, 0};
    if (moves[0] != moves[1]) {  // a dof that moves both changes nothing
      int side = moves[1];
      Motion at = about(dof, s.offset[side]);
      lin = side ? at.lin : -at.lin, ang = side ? at.ang : -at.ang;
    }
    for (int r = 0; r < b.count; r++) {
      b.J[r * b.n + k] = dot(axis(*b.geometry, r), r < 3 ? lin : ang);
    }
  }
}

void differentiate_contact(const ModelView& m, const DataView& d, const Block& b,
                           const BlockMotion& motion, BlockChange& change) {
  const ContactGeometry& g = *b.geometry;
  const Sides s = sides(m, d, b);
  const int n = b.n;

  // contact force on body 1, and the relative motions under a and v
  Vec3 force{0, 0, 0}, torque{0, 0, 0};
  for (int r = 0; r < b.count; r++) {
    (r < 3 ? force : torque) += b.force[r] * axis(g, r);
  }
  Motion with_a[2], with_v[2];
  for (int k = 0; k < 2; k++) {
    with_a[k] = about(motion.moved[s.body[k]], s.offset[k]);
    with_v[k] = about(load_motion(d.cvel + 6 * s.body[k]), s.offset[k]);
  }
  // normal rows and friction rows may be damped differently
  const bool elliptic = b.type == constraint::kContactElliptic;
  const Reference normal = reference(d, b.row);
  const Reference friction = elliptic && b.count > 1 ? reference(d, b.row + 1) : normal;

  // per column: wrench change beyond being carried along with each side
  ChainWalk walk[2] = {{m, s.last[0]}, {m, s.last[1]}};
  for (int k = n - 1; k >= 0; k--) {
    const int dof = b.dofs[k];
    bool moves[2] = {walk[0].next(dof), walk[1].next(dof)};
    Motion axis_k[2] = {};
    for (int side = 0; side < 2; side++) {
      if (moves[side]) axis_k[side] = about(load_motion(d.cdof + 6 * dof), s.offset[side]);
    }
    const ContactVariation v = vary(g, axis_k);

    // d(J y) for y = a + B v                                                            (ROW-4)
    Vec3 lin[2] = {}, ang[2] = {}, rel_lin[2] = {}, rel_ang[2] = {};  // normal, friction damping
    for (int which = 0; which < (elliptic ? 2 : 1); which++) {
      double damping = which ? friction.damping : normal.damping;
      for (int side = 0; side < 2; side++) {
        double sign = side ? 1 : -1;
        Motion y = with_a[side] + damping * with_v[side];
        rel_lin[which] += sign * y.lin, rel_ang[which] += sign * y.ang;
        lin[which] += sign * cross(y.ang, v.position);
        if (!moves[side]) continue;
        Motion rate = motion.moved_rate[dof] + damping * load_motion(d.cdof_dot + 6 * dof);
        Motion dy = cross(axis_k[side], y) + about(rate, s.offset[side]);
        lin[which] += sign * dy.lin, ang[which] += sign * dy.ang;
      }
    }
    for (int r = 0; r < b.count; r++) {
      int which = elliptic && r > 0;
      Vec3 e = axis(g, r), de = cross(v.turn, e);
      change.rho_q[r * n + k] = r < 3 ? dot(e, lin[which]) + dot(de, rel_lin[which])
                                      : dot(e, ang[which]) + dot(de, rel_ang[which]);
      change.rho_v[r * n + k] = (which ? friction.damping : normal.damping) * b.J[r * n + k];
    }
    change.rho_q[k] +=
        normal.stiffness * (normal.imp + normal.slope * normal.gap) * v.distance;
    change.dlogD[k] = normal.dlogD * v.distance;

    // d(J^T f)                                                                          (ROW-5)
    Force wrench = {torque, force};
    Force turned = {cross(v.turn, torque) + cross(v.position, force), cross(v.turn, force)};
    Force carried[2] = {turned, turned};
    for (int side = 0; side < 2; side++) {
      if (moves[side]) carried[side] = turned - cross(axis_k[side], wrench);
    }
    ChainWalk rows[2] = {{m, s.last[0]}, {m, s.last[1]}};
    for (int j = n - 1; j >= 0; j--) {
      int other = b.dofs[j];
      bool on[2] = {rows[0].next(other), rows[1].next(other)};
      if (on[0] == on[1]) continue;
      int side = on[1];
      Motion axis_j = about(load_motion(d.cdof + 6 * other), s.offset[side]);
      bool moved = moves[side] && moves_axis(m, dof, other);
      double value = dot(axis_j, moved ? carried[side] : turned);
      change.turned[j * n + k] = side ? value : -value;
    }
  }
}

}  // namespace mujacobian

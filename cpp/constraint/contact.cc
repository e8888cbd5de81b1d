// Contacts: the rows (normal, tangent 1, tangent 2, spin, roll 1, roll 2) of the relative motion of
// two bodies at the contact point.
#include "constraint/contact.h"

#include "constraint/shift.h"
#include "constraint/wrench.h"
#include "contact/identification.h"

#include "forces/passive.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// Returns the change of the relative velocity of the surfaces in row r, a tangent or the spin.
// (ROW-10)
double surface_velocity_change(const SurfaceVelocity& s, const ContactGeometry& g,
                               const Motion moved[2], const ContactVariation& v, int r) {
  Vec3 value{0, 0, 0}, change{0, 0, 0};
  for (int side = 0; side < 2; side++) {
    double sign = side ? 1 : -1;
    Vec3 turn = moved[side].ang;
    if (r == 3) {
      value += sign * s.ang[side];
      change += sign * cross(turn, s.ang[side]);
    } else {
      Vec3 center = moved[side].lin - cross(turn, s.arm[side]);
      value += sign * (s.lin[side] + cross(s.ang[side], s.arm[side]));
      change += sign * (cross(turn, s.lin[side]) + cross(cross(turn, s.ang[side]), s.arm[side]) +
                        cross(s.ang[side], v.position - center));
    }
  }
  return dot(contact_axis(g, r), change + cross(value, v.turn));
}

// Computes -d aref / d(distance) of every row. Friction rows have no position of their own, but in
// a pyramid they use the impedance of the normal row.
void distance_slopes(const DataView& d, const Block& b, const ReferenceAcceleration& normal,
                     const ReferenceAcceleration& friction, double slope[kMaxRows]) {
  slope[0] = 0;
  for (int r = 0; r < b.count; r++) {
    double velocity, gap = r == 0 ? d.efc_pos[b.row] - d.efc_margin[b.row] : 0;
    const ReferenceAcceleration& ref = r == 0 ? normal : friction;
    if (b.edges == b.count) {
      velocity = d.efc_vel[b.row + r];
    } else {  // half the sum and difference of two edges n +- mu_k t_k
      const double* edge = d.efc_vel + b.row + (r > 0 ? 2 * (r - 1) : 0);
      velocity = r == 0 ? 0.5 * (edge[0] + edge[1])
                        : (edge[0] - edge[1]) / (2 * b.contact.friction.v[r - 1]);
    }
    double aref = -ref.damping * velocity - ref.stiffness * gap;
    slope[r] = ref.through(gap, velocity, aref);
  }
  slope[0] += normal.stiffness;
}

// Returns e . (S x y), of the linear or the angular part, as a linear function of the motion S.
Motion rigid_rate(Motion y, Vec3 e, bool linear) {
  if (!linear) return {cross(y.ang, e), {0, 0, 0}};
  return {cross(y.lin, e), cross(y.ang, e)};
}

// Adds the change of a row of the relative motion with the position and the frame of the contact,
// and `slope` times the change of the distance: e . d + (turn x e) . rel = e . (d + rel x turn).
void add_row_change(const ContactMap& map, Motion relative, double slope, Vec3 e, bool linear,
                    double* row) {
  const Vec3 shifted = linear ? cross(e, relative.ang) : Vec3{0, 0, 0};
  const Vec3 turned = cross(e, linear ? relative.lin : relative.ang);
  for (int k = 0; k < ContactMap::kColumns; k++) {
    row[k] += slope * map.distance[k] + shifted.x * map.position[0][k] +
              shifted.y * map.position[1][k] + shifted.z * map.position[2][k] +
              turned.x * map.turn[0][k] + turned.y * map.turn[1][k] + turned.z * map.turn[2][k];
  }
}

// Throws Unsupported if the geoms touch along a line that a dof turns relative to one of them.
// (CON-31)
void require_fixed_line(const ModelView& m, const Block& b) {
  constexpr double kRounding = 1e-12;
  if (norm(b.geometry->line) == 0) return;
  const ContactDofs& c = *b.chain;
  for (int k = 0; k < b.n; k++) {
    const Vec3 turn = c.axis[k].ang;
    if (c.moves[k] == 3 || norm(cross(turn, b.geometry->line)) <= kRounding * norm(turn)) continue;
    throw Unsupported(contact_name(m, b.contact),
                      "its geoms touch along a line, and MuJoCo's point on it jumps if they tilt");
  }
}

// Adds the change of the rows J y and of log D for the motions `moved` of the two bodies, with
// `map` the motion of the contact that they cause.
void add_body_motion(const Block& b, const ContactMotion& motion, const ContactDofs& moved,
                     const ContactMap& map, BlockChange& change) {
  // linear functions of the 12 components of the two motions
  double rows[kMaxRows][ContactMap::kColumns], nearer[1][ContactMap::kColumns];
  for (int r = 0; r < b.count; r++) {
    const int kind = r > 0 && motion.kinds == 2;
    const Vec3 e = contact_axis(*b.geometry, r);
    for (int side = 0; side < 2; side++) {
      const Motion rate = rigid_rate(motion.y[kind][side], e, r < 3);
      store_motion(rows[r] + 6 * side, (side ? 1 : -1) * rate);
    }
    add_row_change(map, motion.relative[kind], motion.slope[r], e, r < 3, rows[r]);
  }
  for (int k = 0; k < ContactMap::kColumns; k++) nearer[0][k] = motion.dlogD * map.distance[k];

  // applied to the motions of every dof
  add_rows(moved, rows, b.count, change.rho_q);
  add_rows(moved, nearer, 1, change.dlogD);
}

}  // namespace

Vec3 contact_axis(const ContactGeometry& g, int row) {
  int k = row % 3;
  return k == 0 ? g.normal : g.tangent[k - 1];
}

SurfaceVelocity surface_velocity(const ModelView& m, const DataView& d, const Block& b) {
  SurfaceVelocity s{};
  for (int side = 0; m.flg_surfacevel && side < 2; side++) {
    int id = b.contact.geom.v[side];
    const double* v = m.geom_surfacevel + 6 * id;
    for (int k = 0; k < 6; k++) s.any |= v[k] != 0;
    const Geom geom = load_geom(m, d, id);
    s.lin[side] = geom.frame * load3(v);
    s.ang[side] = geom.frame * load3(v + 3);
    s.arm[side] = load3(b.contact.pos.v) - geom.position;
  }
  return s;
}

double adhesive_reference(const DataView& d, const Block& b) {
  return b.contact.adhesion * d.efc_R[b.row] / (b.edges == b.count ? 1 : b.edges);
}

ContactMotion contact_motion(const ModelView& m, const DataView& d, const Block& b,
                             const BlockMotion& motion) {
  const ContactDofs& c = *b.chain;
  ContactMotion r{};
  // the wrench of the rows, and of adhesion, which is a passive force along the normal
  for (int k = 0; k < b.count; k++) {
    (k < 3 ? r.wrench.lin : r.wrench.ang) += b.force[k] * contact_axis(*b.geometry, k);
  }
  if (passive_enabled(m)) r.wrench.lin += -b.contact.adhesion * b.geometry->normal;

  // the motion of the two bodies, for each kind of row
  const bool elliptic = b.type == constraint::kContactElliptic;
  const ReferenceAcceleration normal = reference_acceleration(m, d, b);
  const ReferenceAcceleration friction =
      elliptic && b.count > 1 ? reference_acceleration(m, d, b, 1) : normal;
  r.damping[0] = normal.damping, r.damping[1] = friction.damping;
  r.kinds = r.damping[0] == r.damping[1] ? 1 : 2;
  for (int kind = 0; kind < r.kinds; kind++) {
    for (int side = 0; side < 2; side++) {
      Motion v = load_motion(d.cvel + 6 * c.body[side]);
      r.y[kind][side] = about(motion.moved[c.body[side]] + r.damping[kind] * v, c.offset[side]);
    }
    r.relative[kind] = r.y[kind][1] + -1.0 * r.y[kind][0];
  }

  // derivatives with respect to the distance
  distance_slopes(d, b, normal, friction, r.slope);
  r.slope[0] += adhesive_reference(d, b) * normal.dlogD;
  r.dlogD = normal.dlogD;
  return r;
}

void make_contact(const ModelView& m, const DataView& d, Block& b, const Block* before,
                  const ContactGeometry* known, Arena& arena) {
  // the contact and its features
  b.contact = view_contact(d, b.id);
  b.count = b.contact.dim;
  b.edges = b.type == constraint::kContactPyramidal ? 2 * (b.count - 1) : b.count;
  b.geometry = known;
  if (!known) {
    b.geometry = new (arena.take<ContactGeometry>(1))
        ContactGeometry(identify(m, d, b.contact, before ? before->geometry : nullptr));
  }

  // its dofs, and its Jacobian in contact coordinates
  b.chain = new (arena.take<ContactDofs>(1))
      ContactDofs(contact_dofs(m, d, b.contact, arena, before ? before->chain : nullptr));
  const ContactDofs& c = *b.chain;
  take_jacobian(b, c.n, c.dofs, arena);
  for (int k = 0; k < b.n; k++) {
    for (int r = 0; r < b.count; r++) {
      Vec3 motion = r < 3 ? c.axis[k].lin : c.axis[k].ang;
      b.J[r * b.stride + k] = c.sign(k) * dot(contact_axis(*b.geometry, r), motion);
    }
  }
}

void differentiate_contact(const ModelView& m, const DataView& d, const Block& b,
                           const BlockMotion& motion, BlockChange& change, Arena& arena) {
  require_features(m, b.contact, *b.geometry);
  require_fixed_line(m, b);
  const ContactGeometry& g = *b.geometry;
  const ContactDofs& c = *b.chain;
  const int n = b.n, stride = b.stride;

  // change of J y for y = a + B v, and of J^T f, with the motion of the bodies            (ROW-4)
  const ContactMotion moving = contact_motion(m, d, b, motion);
  const double* damping = moving.damping;
  const int kinds = moving.kinds;
  visit_maps(g, c, arena, [&](const ContactDofs& moved, const ContactMap& map) {
    add_body_motion(b, moving, moved, map, change);
    turn_wrench(m, moved, map, moving.wrench, change.geometric_stiffness, arena);
  });

  // change of J y with the motion of the axes of dofs that move one of the bodies         (ROW-3)
  for (int k = 0; k < n; k++) {
    if (c.moves[k] == 3) continue;
    const Vec3 offset = c.offset[c.moves[k] >> 1];
    const Motion rate = c.sign(k) * motion.moved_rate[b.dofs[k]];
    const Motion dot_rate = c.sign(k) * load_motion(d.cdof_dot + 6 * b.dofs[k]);
    for (int kind = 0; kind < kinds; kind++) {
      const Motion sum = about(rate + damping[kind] * dot_rate, offset);
      for (int r = kind; r < (kind == kinds - 1 ? b.count : 1); r++) {
        change.rho_q[r * stride + k] += dot(contact_axis(g, r), r < 3 ? sum.lin : sum.ang);
      }
    }
  }

  // change of the velocities of moving surfaces                                           (ROW-10)
  const SurfaceVelocity surface = surface_velocity(m, d, b);
  for (int k = 0; surface.any && k < n; k++) {
    const ContactVariation v = vary(g, c, k);
    Motion moved[2] = {};
    for (int side = 0; side < 2; side++) {
      if (c.moves[k] >> side & 1) moved[side] = c.axis[k];
    }
    for (int r = 1; r < b.count && r < 4; r++) {
      change.rho_q[r * stride + k] += damping[1] * surface_velocity_change(surface, g, moved, v, r);
    }
  }

  // velocities enter through the damping only
  for (int r = 0; r < b.count; r++) {
    for (int k = 0; k < stride; k++) {
      change.rho_v[r * stride + k] = damping[r > 0] * b.J[r * stride + k];
    }
  }
}

ContactChange shift_contact(const ModelView& m, const DataView& d, const Block& b,
                            const BlockMotion& motion, const ContactVariation& v) {
  if (surface_velocity(m, d, b).any) {
    throw Unsupported(contact_name(m, b.contact),
                      "parameters of geometry are not supported with moving surfaces");
  }
  const ContactMotion contact = contact_motion(m, d, b, motion);
  ContactChange change{};
  for (int r = 0; r < b.count; r++) {
    const Motion& relative = contact.relative[r > 0 && contact.kinds == 2];
    const Vec3 moved = r < 3 ? cross(relative.lin, v.turn) + cross(relative.ang, v.position)
                             : cross(relative.ang, v.turn);
    change.rho[r] = dot(contact_axis(*b.geometry, r), moved) + contact.slope[r] * v.distance;
  }
  change.dlogD = contact.dlogD * v.distance;
  change.wrench = contact.wrench;
  return change;
}

const ContactVariation* contact_variations(const ModelView& m, const Block& b, Arena& arena) {
  require_features(m, b.contact, *b.geometry);
  if (norm(b.geometry->line) > 0) {
    throw Unsupported(contact_name(m, b.contact),
                      "its geoms touch along a line, and MuJoCo's point on it is arbitrary");
  }
  ContactVariation* all = arena.take<ContactVariation>(b.n);
  for (int k = 0; k < b.n; k++) all[k] = vary(*b.geometry, *b.chain, k);
  return all;
}

ContactForce contact_force(const Block& b) {
  ContactForce f{};
  for (int r = 0; r < b.count; r++) f.value[r] = b.force[r];
  f.value[0] -= b.contact.adhesion;
  return f;
}

BlockWrench contact_wrench(const ModelView& m, const Block& b, Arena& arena) {
  const ContactForce force = contact_force(b);
  // the two bodies, with opposite wrenches at the contact
  BlockWrench w{};
  for (int side = 0; side < 2; side++) {
    w.body[side] = m.geom_bodyid[b.contact.geom.v[side]];
    w.sign[side] = side ? 1 : -1;
    w.at[side] = b.geometry->position;
  }
  // the wrench of each row, and their sum
  for (int r = 0; r < b.count; r++) {
    const Vec3 e = contact_axis(*b.geometry, r);
    w.unit[r] = r < 3 ? Force{{0, 0, 0}, e} : Force{e, {0, 0, 0}};
    w.value += force.value[r] * w.unit[r];
  }
  // its change with each dof
  const ContactVariation* moved = contact_variations(m, b, arena);
  w.change[0] = w.change[1] = arena.take<Force>(b.n);
  for (int k = 0; k < b.n; k++) w.change[0][k] = moved_wrench(w.value, moved[k]);
  return w;
}

}  // namespace mujacobian

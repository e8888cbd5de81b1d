// Contacts: rows (normal, tangent 1, tangent 2, spin, roll 1, roll 2) of the relative motion of the
// two bodies at the contact point.
#include "constraint/wrench.h"

#include "layout/enums.h"
#include "smooth/passive.h"

namespace mujacobian {
namespace {

Vec3 axis(const ContactGeometry& g, int row) {
  int k = row % 3;
  return k == 0 ? g.normal : g.tangent[k - 1];
}

// Velocities of conveyor-like surfaces, turning with their geoms.
struct SurfaceVelocity {
  bool any;
  Vec3 lin[2], ang[2];  // of each geom, in world axes; `lin` at the geom's center
  Vec3 arm[2];          // from the geom's center to the contact
};

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

// Change of the surfaces' relative velocity in row r: tangents and spin only              (ROW-10)
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
  return dot(axis(g, r), change + cross(value, v.turn));
}

// -d aref / d(distance) of every row. Friction rows have no position of their own, but in a pyramid
// they share the impedance of the normal.
void distance_pull(const DataView& d, const Block& b, const Reference& normal,
                   const Reference& friction, double pull[kMaxRows]) {
  pull[0] = 0;
  for (int r = 0; r < b.count; r++) {
    double velocity, gap = r == 0 ? d.efc_pos[b.row] - d.efc_margin[b.row] : 0;
    const Reference& ref = r == 0 ? normal : friction;
    if (b.edges == b.count) {
      velocity = d.efc_vel[b.row + r];
    } else {  // half the sum and difference of two edges n +- mu_k t_k
      const double* edge = d.efc_vel + b.row + (r > 0 ? 2 * (r - 1) : 0);
      velocity = r == 0 ? 0.5 * (edge[0] + edge[1])
                        : (edge[0] - edge[1]) / (2 * b.contact.friction.v[r - 1]);
    }
    double aref = -ref.damping * velocity - ref.stiffness * gap;
    pull[r] = ref.through(gap, velocity, aref);
  }
  pull[0] += normal.stiffness;
}

}  // namespace

void make_contact(const ModelView& m, const DataView& d, Block& b, Arena& arena) {
  b.contact = view_contact(d, b.id);
  b.count = b.contact.dim;
  b.edges = b.type == constraint::kContactPyramidal ? 2 * (b.count - 1) : b.count;
  b.geometry = new (arena.take<ContactGeometry>(1)) ContactGeometry(identify(m, d, b.contact));
  b.chain = new (arena.take<ContactDofs>(1)) ContactDofs(contact_dofs(m, d, b.contact, arena));
  const ContactDofs& c = *b.chain;
  take_jacobian(b, c.n, c.dofs, arena);
  for (int k = 0; k < b.n; k++) {
    for (int r = 0; r < b.count; r++) {
      Vec3 motion = r < 3 ? c.axis[k].lin : c.axis[k].ang;
      b.J[r * b.stride + k] = c.sign(k) * dot(axis(*b.geometry, r), motion);
    }
  }
}

void differentiate_contact(const ModelView& m, const DataView& d, const Block& b,
                           const BlockMotion& motion, BlockChange& change, Arena& arena) {
  const ContactGeometry& g = *b.geometry;
  const ContactDofs& c = *b.chain;
  const int n = b.n, stride = b.stride;

  // contact force on body 1; adhesion pulls along the normal as a passive force
  Force wrench{};
  for (int r = 0; r < b.count; r++) {
    (r < 3 ? wrench.lin : wrench.ang) += b.force[r] * axis(g, r);
  }
  if (passive_enabled(m)) wrench.lin += -b.contact.adhesion * g.normal;

  // motions under y = a + B v; normal rows and friction rows may be damped differently
  const bool elliptic = b.type == constraint::kContactElliptic;
  const Reference normal = reference(m, d, b.row);
  const Reference friction = elliptic && b.count > 1 ? reference(m, d, b.row + 1) : normal;
  const double damping[2] = {normal.damping, friction.damping};
  const int kinds = damping[0] == damping[1] ? 1 : 2;
  Motion y[2][2], relative[2];  // [kind of row][side]
  for (int kind = 0; kind < kinds; kind++) {
    for (int side = 0; side < 2; side++) {
      Motion v = load_motion(d.cvel + 6 * c.body[side]);
      y[kind][side] = about(motion.moved[c.body[side]] + damping[kind] * v, c.offset[side]);
    }
    relative[kind] = y[kind][1] + -1.0 * y[kind][0];
  }

  ContactVariation* variation = arena.take<ContactVariation>(n);
  const SurfaceVelocity surface = surface_velocity(m, d, b);
  double pull[kMaxRows];
  distance_pull(d, b, normal, friction, pull);
  // adhesion shifts the reference by R adhesion, shared by the edges of a pyramid
  const double share = b.edges == b.count ? 1 : b.edges;
  pull[0] += b.contact.adhesion / share * d.efc_R[b.row] * normal.dlogD;
  for (int k = 0; k < n; k++) {
    const int dof = b.dofs[k];
    Motion moved[2] = {};
    for (int side = 0; side < 2; side++) {
      if (c.moves[k] >> side & 1) moved[side] = c.axis[k];
    }
    const ContactVariation v = variation[k] = vary(g, moved);

    // d(J y) for y = a + B v                                                            (ROW-4)
    for (int kind = 0; kind < kinds; kind++) {
      Vec3 lin = cross(relative[kind].ang, v.position), ang{0, 0, 0};
      Motion rate =
          about(motion.moved_rate[dof] + damping[kind] * load_motion(d.cdof_dot + 6 * dof),
                c.offset[c.moves[k] >> 1]);
      for (int side = 0; side < 2; side++) {
        if (!(c.moves[k] >> side & 1)) continue;
        double sign = side ? 1 : -1;
        Motion dy = cross(c.axis[k], y[kind][side]) + rate;
        lin += sign * dy.lin, ang += sign * dy.ang;
      }
      // e . d + (turn x e) . rel = e . (d + rel x turn)
      lin += cross(relative[kind].lin, v.turn), ang += cross(relative[kind].ang, v.turn);
      int first = kind, last = kind == kinds - 1 ? b.count : 1;
      for (int r = first; r < last; r++) {
        change.rho_q[r * stride + k] = dot(axis(g, r), r < 3 ? lin : ang) + pull[r] * v.distance;
      }
    }
    if (surface.any) {
      for (int r = 1; r < b.count && r < 4; r++) {
        change.rho_q[r * stride + k] +=
            damping[1] * surface_velocity_change(surface, g, moved, v, r);
      }
    }
    change.dlogD[k] = normal.dlogD * v.distance;
  }
  for (int r = 0; r < b.count; r++) {
    for (int k = 0; k < stride; k++) {
      change.rho_v[r * stride + k] = damping[r > 0] * b.J[r * stride + k];
    }
  }
  turn_wrench(m, c, variation, wrench, stride, change.turned, arena);
}

const ContactVariation* contact_variations(const Block& b, Arena& arena) {
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
  BlockWrench w{};
  for (int side = 0; side < 2; side++) {
    w.body[side] = m.geom_bodyid[b.contact.geom.v[side]];
    w.sign[side] = side ? 1 : -1;
    w.at[side] = b.geometry->position;
  }
  for (int r = 0; r < b.count; r++) {
    const Vec3 e = axis(*b.geometry, r);
    w.unit[r] = r < 3 ? Force{{0, 0, 0}, e} : Force{e, {0, 0, 0}};
    w.value += force.value[r] * w.unit[r];
  }
  const ContactVariation* moved = contact_variations(b, arena);
  w.change[0] = w.change[1] = arena.take<Force>(b.n);
  for (int k = 0; k < b.n; k++) w.change[0][k] = moved_wrench(w.value, moved[k]);
  return w;
}

}  // namespace mujacobian

#include <new>

#include "adjoint/curve.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "tree/composite.h"

namespace mujacobian {

// The motions of a body and of the dofs that move it, in the frame of the body, about its origin.
struct BodyMotions {
  struct Dof {
    int index;
    Motion axis, axis_dot, virt, second, sum;  // with the rates of a sweep
  };
  int body, count;
  Motion velocity, virt, acceleration;
  Dof* dofs;
};

namespace {

// Returns the index of a component (mass, mass * com, inertia) in MuJoCo's packed inertia.
int packed_place(int component) {
  return component == 0 ? 9 : component < 4 ? 5 + component : component - 4;
}

// Converts motions about the reference point of the body's tree to the frame of the body, about its
// origin.
struct BodyFrame {
  Vec3 offset;
  Mat3 axes;

  BodyFrame(const ModelView& m, const DataView& d, int body)
      : offset(load3(d.xpos + 3 * body) - load3(d.subtree_com + 3 * m.body_rootid[body])),
        axes(load9(d.xmat + 9 * body)) {}
  Motion take(const Motion& x) const {
    return {transpose_mul(axes, x.ang), transpose_mul(axes, at_point(x, offset))};
  }
};

// Adds S . (I A + V x* I V)                                                                 (PAR-1)
void add_body(const ModelView& m, const Pass& pass, int body, const Inertia& inertia,
              double* column) {
  const DataView& d = pass.d;
  const BodyFrame frame(m, d, body);
  const Motion v = frame.take(load_motion(d.cvel + 6 * body));
  const Force force = inertia * frame.take(pass.motion.acceleration[body]) + cross(v, inertia * v);
  for (int i = last_dof(m, body); i >= 0; i = m.dof_parentid[i]) {
    column[i] += pass.weight * dot(frame.take(load_motion(d.cdof + 6 * i)), force);
  }
}

// Adds S . I S, the part of M_ii that comes from the body
void add_diagonal(const ModelView& m, const DataView& d, int body, const Inertia& inertia,
                  double* diagonal) {
  const BodyFrame frame(m, d, body);
  for (int i = last_dof(m, body); i >= 0; i = m.dof_parentid[i]) {
    const Motion axis = frame.take(load_motion(d.cdof + 6 * i));
    diagonal[i] += dot(axis, inertia * axis);
  }
}

// Returns a unit of one component of a body's inertia.
struct UnitInertia {
  double packed[10] = {};
  explicit UnitInertia(int component) { packed[packed_place(component)] = 1; }
  operator Inertia() const { return {packed}; }
};

// Calls visit(dof, by_q, by_v, by_a) with the derivatives of U . (I A + V x* I V) with respect to
// the position, velocity and acceleration of the dofs that move the body.           (HES-9, HVP-8)
template <class F>
void visit_slopes(const BodyMotions& x, Inertia inertia, F visit) {
  const Force force = inertia * x.acceleration + cross(x.velocity, inertia * x.velocity);
  const Force momentum = inertia * x.virt;
  const Mat3 rate = inertia_rate(inertia, x.virt, momentum.ang);
  const Vec3 torque = -(transpose_mul(rate, x.velocity.ang) +
                        2.0 * cross(momentum.lin, x.velocity.lin));  // (HES-11)
  for (int k = 0; k < x.count; k++) {
    const BodyMotions::Dof& dof = x.dofs[k];
    visit(dof.index,
          dot(dof.virt, force) + dot(dof.second, momentum) + dot(dof.axis_dot.ang, torque),
          dot(dof.sum, momentum) + dot(dof.axis.ang, torque), dot(dof.axis, momentum));
  }
}

// Returns U . I G for gravity that grows along an axis.
double weight_of(CurveContext& x, int body, Inertia inertia, int axis) {
  const BodyFrame frame(x.m, x.d, body);
  const Motion u = frame.take(load_motion(x.virtual_early().cvel + 6 * body));
  return dot(u, inertia * frame.take({{0, 0, 0}, unit3(axis)}));
}

}  // namespace

const BodyMotions& CurveContext::body_motions(int slot, const Pass& pass, const DataView& virt,
                                              int body) {
  BodyMotions*& x = motions_[slot];
  if (!x) x = new (arena.take<BodyMotions>(1)) BodyMotions{-1, 0, {}, {}, {}, nullptr};
  if (!x->dofs) x->dofs = arena.take<BodyMotions::Dof>(m.nv);
  if (x->body == body) return *x;
  const BodyFrame frame(m, pass.d, body);
  x->body = body, x->count = 0;
  x->velocity = frame.take(load_motion(pass.d.cvel + 6 * body));
  x->virt = frame.take(load_motion(virt.cvel + 6 * body));
  x->acceleration = frame.take(pass.motion.acceleration[body]);
  for (int i = last_dof(m, body); i >= 0; i = m.dof_parentid[i]) {
    const DofRates& rates = pass.motion.rates[i];
    x->dofs[x->count++] = {i,
                           frame.take(load_motion(pass.d.cdof + 6 * i)),
                           frame.take(load_motion(pass.d.cdof_dot + 6 * i)),
                           frame.take(load_motion(virt.cdof_dot + 6 * i)),
                           frame.take(rates.second),
                           frame.take(rates.sum)};
  }
  return *x;
}

void add_inertial(const ModelView& m, const StepDifferential& s, const Passes& passes, int body,
                  const double* components, const Column& column) {
  double packed[10];
  for (int k = 0; k < 10; k++) packed[packed_place(k)] = components[k];
  const Inertia inertia{packed};
  add_body(m, passes.early, body, inertia, column.early);
  for (int k = 0; k < passes.count(in_block(m, s, body)); k++) {
    add_body(m, passes.late[k], body, inertia, column.late);
  }
  if (column.inertia) add_diagonal(m, passes.early.d, body, inertia, column.inertia);
}

Force inertial_force(const ModelView& m, const DataView& d, int body, int component,
                     const Motion& acceleration) {
  const UnitInertia unit(component);
  const Inertia inertia = unit;
  const BodyFrame frame(m, d, body);
  const Motion v = frame.take(load_motion(d.cvel + 6 * body));
  const Force force = inertia * frame.take(acceleration) + cross(v, inertia * v);
  const Vec3 lin = frame.axes * force.lin;
  return {frame.axes * force.ang + cross(frame.offset, lin), lin};
}

void add_inertia(ColumnContext& x, const Parameter& p, const Column& column) {
  double unit[10] = {};
  unit[p.component] = 1;
  add_inertial(x.m, x.s, x.passes(), p.id, unit, column);
}

void curve_inertia(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  const int nv = x.m.nv, body = p.id;
  const UnitInertia unit(p.component);
  const Passes& passes = x.columns.passes();
  visit_slopes(x.body_motions(0, passes.early, x.virtual_early(), body), unit,
               [&](int i, double q, double v, double a) {
                 to.state[i] -= q, to.state[nv + i] -= v, to.early[i] -= a;
               });

  // M (w - a), where both accelerations differ
  visit_slopes(x.body_motions(1, passes.late[0], x.virtual_late(), body), unit,
               [&](int i, double q, double, double a) {
                 if (!solves_both(x.s, x.s.forward.residual.component[i])) return;
                 to.state[i] -= q, to.late[i] -= a, to.early[i] += a;
               });

  // h (dc/dv) w, where the bias c is in the integrator's matrix: its derivative with respect to w
  // is that of c with respect to v
  if (!in_block(x.m, x.s, body)) return;
  visit_slopes(x.body_motions(2, passes.early, x.virtual_late(), body), unit,
               [&](int i, double, double v, double) { to.late[i] -= x.m.opt.timestep * v; });
  for (int k = Passes::kBias; k < passes.late_count; k++) {
    const double weight = passes.late[k].weight;
    visit_slopes(x.body_motions(2 + k, passes.late[k], x.virtual_late(), body), unit,
                 [&](int i, double q, double v, double) {
                   to.state[i] += weight * q, to.state[nv + i] += weight * v;
                 });
  }
}

// xfrc_applied acts at the center of mass. All else that the frame changes is that of the inertia.
void add_inertial_frame(ColumnContext& x, const Parameter& p, const Column&) {
  const Vec3 force = load3(x.d.xfrc_applied + 6 * p.id);
  if (force.x == 0 && force.y == 0 && force.z == 0) return;
  throw Unsupported(element_name(x.m, object::kBody, p.id),
                    "its center of mass is not supported as a parameter while a force of "
                    "xfrc_applied acts there");
}

// Fluids and gravity compensation read the inertia of a body, too.
void require_inertia(const ModelView& m, const Parameter& p) {
  if (m.opt.density > 0 || m.opt.viscosity > 0) {
    throw Unsupported(element_name(m, object::kBody, p.id),
                      "its inertia is not supported as a parameter in a fluid");
  }
  if (m.body_gravcomp[p.id] != 0) {
    throw Unsupported(element_name(m, object::kBody, p.id),
                      "its inertia is not supported as a parameter with gravity compensation");
  }
  require_armature(m, p);
}

void add_armature(ColumnContext& x, const Parameter& p, const Column& column) {
  column.early[p.id] -= x.s.at[p.id];
  column.late[p.id] -= x.s.lag[p.id];
  if (column.inertia) column.inertia[p.id] += 1;
}

void curve_armature(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  to.early[p.id] -= x.curved.mu.g[p.id];
  if (!solves_both(x.s, x.s.forward.residual.component[p.id])) return;
  to.late[p.id] -= x.curved.mu.s[p.id];
  to.early[p.id] += x.curved.mu.s[p.id];
}

void require_armature(const ModelView& m, const Parameter&) {
  if (!(m.opt.enableflags & enable::kDiagExact)) return;
  throw Unsupported("option diagexact", "inertial parameters are not supported with it");
}

// The world accelerates by -gravity, so that -dg is the weight of each dof's subtree        (PAR-4)
void add_gravity(ColumnContext& x, const Parameter& p, const Column& column) {
  if (x.m.opt.disableflags & disable::kGravity) return;
  const Motion lifted{{0, 0, 0}, unit3(p.component)};
  for (int i = 0; i < x.m.nv; i++) {
    const Inertia below{x.d.crb + 10 * x.m.dof_bodyid[i]};
    column.early[i] += dot(load_motion(x.d.cdof + 6 * i), below * lifted);
  }
}

// A wrench of xfrc_applied acts at the center of mass, in the world's axes.                (PAR-30)
void add_wrench(ColumnContext& x, const Parameter& p, const Column& column) {
  const Vec3 reference = load3(x.d.subtree_com + 3 * x.m.body_rootid[p.id]);
  const Vec3 offset = load3(x.d.xipos + 3 * p.id) - reference, e = unit3(p.component % 3);
  for (int i = last_dof(x.m, p.id); i >= 0; i = x.m.dof_parentid[i]) {
    const Motion axis = load_motion(x.d.cdof + 6 * i);
    column.early[i] += dot(p.component < 3 ? at_point(axis, offset) : axis.ang, e);
  }
}

// The power U . I G of all bodies: the axes of dofs turn in the field                      (HVP-9)
void curve_gravity(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  if (x.m.opt.disableflags & disable::kGravity) return;
  const DataView& virt = x.virtual_early();
  Force* momentum = x.arena.take<Force>(x.m.nbody);
  momentum[0] = {};
  for (int b = 1; b < x.m.nbody; b++) {
    momentum[b] = Inertia{x.d.cinert + 10 * b} * load_motion(virt.cvel + 6 * b);
  }
  for (int b = x.m.nbody - 1; b > 0; b--) {
    if (x.m.body_parentid[b] != 0) momentum[x.m.body_parentid[b]] += momentum[b];
  }
  const Motion lifted{{0, 0, 0}, unit3(p.component)};
  for (int i = 0; i < x.m.nv; i++) {
    const int body = x.m.dof_bodyid[i];
    const Inertia below{x.d.crb + 10 * body};
    to.state[i] += dot(load_motion(virt.cdof_dot + 6 * i), below * lifted) +
                   dot(cross(lifted, load_motion(x.d.cdof + 6 * i)), momentum[body]);
  }
}

// Gravity multiplies the inertia of bodies.
void couple_gravity(CurveContext& x, const ParameterList& params, ParameterPairs& pairs) {
  if (x.m.opt.disableflags & disable::kGravity) return;
  for (int j = 0; j < params.count; j++) {
    if (family_of(params.item[j]) != Family::kGravity) continue;
    for (int k = 0; k < params.count; k++) {
      const Parameter& p = params.item[k];
      if (family_of(p) != Family::kInertia) continue;
      pairs.add(j, k, weight_of(x, p.id, UnitInertia(p.component), params.item[j].component));
    }
  }
}

void require_gravity(const ModelView& m, const Parameter&) {
  if (!m.flg_gravcomp) return;
  throw Unsupported("option gravity",
                    "it is not supported as a parameter with gravity compensation");
}

}  // namespace mujacobian

#include "adjoint/column.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
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
  const Force force = inertia * frame.take(pass.acceleration[body]) + cross(v, inertia * v);
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

}  // namespace

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
  double packed[10] = {};
  packed[packed_place(component)] = 1;
  const Inertia inertia{packed};
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

void require_gravity(const ModelView& m, const Parameter&) {
  if (!m.flg_gravcomp) return;
  throw Unsupported("option gravity",
                    "it is not supported as a parameter with gravity compensation");
}

}  // namespace mujacobian

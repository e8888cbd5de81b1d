#include "adjoint/column.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// A motion about the reference point of the body's tree, in the body's frame about its origin.
Motion in_body(const ModelView& m, const DataView& d, int body, Motion v) {
  Vec3 offset = load3(d.xpos + 3 * body) - load3(d.subtree_com + 3 * m.body_rootid[body]);
  Mat3 frame = load9(d.xmat + 9 * body);
  return {transpose_mul(frame, v.ang), transpose_mul(frame, at_point(v, offset))};
}

// Place of a component (mass, mass * com, inertia) in MuJoCo's packed inertia.
int packed_place(int component) {
  return component == 0 ? 9 : component < 4 ? 5 + component : component - 4;
}

// Add S . (I A + V x* I V) for the unit inertia of a component                              (PAR-1)
void add_body(const ModelView& m, const Pass& pass, int body, int component, double* column) {
  double unit[10] = {};
  unit[packed_place(component)] = 1;
  const Inertia inertia{unit};
  const Motion v = in_body(m, pass.d, body, load_motion(pass.d.cvel + 6 * body));
  const Motion a = in_body(m, pass.d, body, pass.acceleration[body]);
  const Force force = inertia * a + cross(v, inertia * v);
  for (int i = last_dof(m, body); i >= 0; i = m.dof_parentid[i]) {
    const Motion axis = in_body(m, pass.d, body, load_motion(pass.d.cdof + 6 * i));
    column[i] += pass.weight * dot(axis, force);
  }
}

}  // namespace

void add_inertial(const ModelView& m, const StepDifferential& s, const Passes& passes,
                  const Parameter& p, const Column& column) {
  add_body(m, passes.early, p.id, p.component, column.early);
  for (int k = 0; k < passes.count(in_block(m, s, p.id)); k++) {
    add_body(m, passes.late[k], p.id, p.component, column.late);
  }
}

void add_armature(const StepDifferential& s, int dof, const Column& column) {
  column.early[dof] -= s.at[dof];
  column.late[dof] -= s.lag[dof];
}

// The world accelerates by -gravity: -dg is the weight of everything below each dof         (PAR-4)
void add_gravity(const ModelView& m, const DataView& d, int component, const Column& column) {
  if (m.opt.disableflags & disable::kGravity) return;
  const Motion lifted{{0, 0, 0}, unit3(component)};
  for (int i = 0; i < m.nv; i++) {
    const Inertia below{d.crb + 10 * m.dof_bodyid[i]};
    column.early[i] += dot(load_motion(d.cdof + 6 * i), below * lifted);
  }
}

}  // namespace mujacobian

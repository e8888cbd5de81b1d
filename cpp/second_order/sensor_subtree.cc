// Center of mass and momentum of a subtree.
#include "layout/enums.h"
#include "second_order/sensor_form.h"
#include "sensor/subtree.h"
#include "sensor/type.h"
#include "tree/point.h"

namespace mujacobian {
namespace {

// A dof that moves a part of the subtree: the subtree of a body.
struct Part {
  int dof;
  Motion axis, axis_dot;
  Inertia inertia;  // of the part
  Vec3 center;      // change of the center of mass of the whole subtree
  Force dq, dv;     // changes of the momentum with the dof and its velocity          (SEN-10)
};

struct Parts {
  int n;
  Part* part;
};

Parts make_parts(Sensing& s, int root) {
  Parts all{0, s.arena.take<Part>(s.m.nv)};
  visit_subtree(s.m, root, [&](int k, int body) {
    const Motion axis = dof_axis(s.d, k), axis_dot = load_motion(s.d.cdof_dot + 6 * k);
    const Inertia inertia{s.d.crb + 10 * body};
    all.part[all.n++] = {k,
                         axis,
                         axis_dot,
                         inertia,
                         center_jacobian(s.m, s.d, root, k, body),
                         cross(axis, s.momentum()[body]) + inertia * axis_dot,
                         inertia * axis};
  });
  return all;
}

// Calls visit(l, k) for all pairs of a part and a part that is the same or below it.
template <class F>
void visit_pairs(Sensing& s, const Parts& all, F visit) {
  // all ancestors of a part are parts
  int* index = s.arena.take<int>(s.m.nv);  // of the part of each dof
  for (int i = 0; i < all.n; i++) index[all.part[i].dof] = i;
  for (int j = 0; j < all.n; j++)
    for (int l = all.part[j].dof; l >= 0; l = s.m.dof_parentid[l]) {
      visit(all.part[index[l]], all.part[j]);
    }
}

// Adds the second derivatives of the product of the momentum with a motion that is fixed in space;
// about(l) returns it about the reference point of the tree of a dof, and of the product of the
// center of mass with `weight`.                                                           (HSE-8)
template <class F>
void add_momentum(Sensing& s, const Parts& all, F about, Vec3 weight, SensorForm& form) {
  constexpr auto v = DofVariable::kVelocity;
  // the factors of (HSE-12) that depend on one dof
  Motion* turned = s.arena.template take<Motion>(all.n);
  Force* carried = s.arena.template take<Force>(all.n);
  Vec3* arm = s.arena.template take<Vec3>(all.n);
  for (int k = 0; k < all.n; k++) {
    const Part& part = all.part[k];
    arm[k] = cross(part.center, weight);
    const Motion along = about(part);
    turned[k] = cross(part.axis, along);
    carried[k] = cross(part.axis, part.inertia * along) - part.inertia * turned[k];
  }
  auto entry = [&](const Part& l, const Part& k, DofVariable::Kind first,
                   DofVariable::Kind second) {
    if (first == v && second == v) return 0.0;
    const Motion& above = turned[&l - all.part];
    if (second == v) return -dot(above, k.dv);
    const Force& below = carried[&k - all.part];
    if (first == v) return dot(l.axis, below);
    return dot(l.axis_dot, below) - dot(above, k.dq) + dot(l.axis.ang, arm[&k - all.part]);
  };
  visit_pairs(s, all, [&](const Part& above, const Part& below) {
    add_chain_pair(
        s.m, above.dof, below.dof, false, [&](auto a, auto b) { return entry(above, below, a, b); },
        [&](auto a, auto b) { return entry(below, above, a, b); }, form);
  });
}

// Adds the second derivatives of the product of the center of mass with `weight`.         (HSE-8)
void add_center(Sensing& s, const Parts& all, Vec3 weight, SensorForm& form) {
  Vec3* arm = s.arena.take<Vec3>(all.n);
  for (int k = 0; k < all.n; k++) arm[k] = cross(all.part[k].center, weight);
  auto entry = [&](const Part& l, const Part& k) { return dot(l.axis.ang, arm[&k - all.part]); };
  visit_pairs(s, all, [&](const Part& above, const Part& below) {
    add_position_pair(
        s.m, above.dof, below.dof, entry(above, below), [&] { return entry(below, above); }, form);
  });
}

// Adds the second derivatives of - weight . (center x linear momentum) that are products of first
// ones.                                                                                   (HSE-9)
void add_arm_products(const Parts& all, Vec3 weight, SensorForm& form) {
  constexpr auto q = DofVariable::kPosition, v = DofVariable::kVelocity;
  for (int i = 0; i < all.n; i++)
    for (int j = 0; j < all.n; j++) {
      const Part &a = all.part[i], &b = all.part[j];
      const double both = -dot(weight, cross(a.center, b.dq.lin));
      form.add({q, a.dof}, {q, b.dof}, i == j ? 2 * both : both);
      form.add({q, a.dof}, {v, b.dof}, -dot(weight, cross(a.center, b.dv.lin)));
    }
}

}  // namespace

void add_subtree_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const ModelView& m = s.m;
  const int type = m.sensor_type[sensor], root = m.sensor_objid[sensor];
  const Parts all = make_parts(s, root);
  const Vec3 weight = load3(weights), none{0, 0, 0};
  if (type == sensor::kSubtreeCom) {
    return add_center(s, all, weight, form);
  }
  if (type == sensor::kSubtreeLinVel) {
    const double mass = m.body_subtreemass[root];
    const Vec3 along = (1 / (mass < kMinVal ? kMinVal : mass)) * weight;
    return add_momentum(s, all, [&](const Part&) { return Motion{none, along}; }, none, form);
  }
  const Vec3 linear = s.momentum()[root].lin, center = load3(s.d.subtree_com + 3 * root);
  auto about_center = [&](const Part& l) {
    const int body = m.dof_bodyid[l.dof];
    const Vec3 arm = center - load3(s.d.subtree_com + 3 * m.body_rootid[body]);
    return Motion{weight, -cross(weight, arm)};
  };
  add_momentum(s, all, about_center, cross(weight, linear), form);
  add_arm_products(all, weight, form);
}

}  // namespace mujacobian

#include "second_order/body_pair.h"

namespace mujacobian {
namespace {

Vec3 change(const PairVec& x) { return {x.x.d[0], x.y.d[0], x.z.d[0]}; }
Vec3 value(const PairVec& x) { return {x.x.v, x.y.v, x.z.v}; }
Force change(const PairForce& x) { return {change(x.ang), change(x.lin)}; }
Force value(const PairForce& x) { return {value(x.ang), value(x.lin)}; }

// The change of the state with the position, the velocity and the acceleration of dof k.  (HES-35)
PairState along_q(const Pair& p, int k) {
  PairState by{};
  const PairDof& o = p.dof[k];
  for (int s = 0; s < 2; s++) {
    if (!p.moves(k, s)) continue;
    const Motion v = p.at.velocity.of[s], a = p.at.acceleration.of[s];
    by.pose.of[s] = o.axis;
    by.velocity.of[s] = o.axis_dot + cross(o.axis, v);
    by.acceleration.of[s] = o.second + cross(o.axis, a) + cross(o.axis_dot, v);
    by.virt.of[s] = o.axis_virtual + cross(o.axis, p.at.virt.of[s]);
  }
  return by;
}
PairState along_v(const Pair& p, int k) {
  PairState by{};
  const PairDof& o = p.dof[k];
  for (int s = 0; s < 2; s++) {
    if (!p.moves(k, s)) continue;
    by.velocity.of[s] = o.axis;
    by.acceleration.of[s] = o.sum + cross(o.axis, p.at.velocity.of[s]);
  }
  return by;
}

// The derivative of the cotangents along one variable.
struct CotangentChange {
  Force pose[2], velocity[2], acceleration[2], virt[2];
};
CotangentChange change(const PairCotangent& bar) {
  CotangentChange r;
  for (int s = 0; s < 2; s++) {
    r.pose[s] = change(bar.pose[s]), r.velocity[s] = change(bar.velocity[s]);
    r.acceleration[s] = change(bar.acceleration[s]), r.virt[s] = change(bar.virt[s]);
  }
  return r;
}

double product(const PairState& by, const CotangentChange& bar) {
  double sum = 0;
  for (int s = 0; s < 2; s++) {
    sum += dot(by.pose.of[s], bar.pose[s]) + dot(by.velocity.of[s], bar.velocity[s]) +
           dot(by.acceleration.of[s], bar.acceleration[s]) + dot(by.virt.of[s], bar.virt[s]);
  }
  return sum;
}

// The forces of dof k, whose products with the axes of its ancestors are second derivatives of the
// motions of the bodies.                                                                  (HES-38)
struct CarriedForces {
  Force q, q_dot;  // second derivatives with q_k and q_l: products with S_l and S'_l
  Force v, v_dot;  // with v_k and q_l
  Force both;      // with v_k and v_l, and with a_k and q_l
};
CarriedForces carried_forces(const Pair& p, int k, const PairState& q, const PairState& v,
                             const PairCotangent& bar) {
  CarriedForces r{};
  for (int s = 0; s < 2; s++) {
    if (!p.moves(k, s)) continue;
    const Force velocity = value(bar.velocity[s]), acceleration = value(bar.acceleration[s]);
    const Motion axis = p.dof[k].axis;
    r.q += cross(q.velocity.of[s], velocity) + cross(q.acceleration.of[s], acceleration) +
           cross(q.virt.of[s], value(bar.virt[s])) + 0.5 * cross(axis, value(bar.pose[s]));
    r.q_dot += cross(q.velocity.of[s], acceleration);
    r.v += cross(axis, velocity) + cross(v.acceleration.of[s], acceleration);
    r.both += cross(axis, acceleration);
  }
  r.v_dot = r.both;
  return r;
}

// Adds the second derivatives of the motions of the bodies with dof k and its ancestors.
void add_carried(const ModelView& m, const Pair& p, int k, const CarriedForces& f,
                 const QuadraticForm& form) {
  const int dof = p.c.dofs[k];
  for (int l = 0; l < p.c.n; l++) {
    if (!(p.c.moves[l] & p.c.moves[k])) continue;
    const int other = p.c.dofs[l];
    const bool joint = l != k && moves_axis(m, dof, other) && moves_axis(m, other, dof);
    if (l > k && !joint) continue;
    const Motion axis = p.dof[l].axis, axis_dot = p.dof[l].axis_dot;
    const double weight = l == k || joint ? 0.5 : 1;  // of entries that are visited twice
    form.q(other)[form.q_column(dof)] += weight * (dot(axis, f.q) + dot(axis_dot, f.q_dot));
    form.q(other)[form.v_column(dof)] += dot(axis, f.v) + dot(axis_dot, f.v_dot);
    if (form.mixed) form.mixed[dof][form.q_column(other)] += dot(axis, f.both);
    if (l == k || joint) continue;
    form.v(other)[form.q_column(dof)] += dot(axis, f.q_dot);
    form.v(other)[form.v_column(dof)] += dot(axis, f.both);
  }
}

}  // namespace

Pair make_pair(const ModelView& m, const DataView& d, const int body[2], Vec3 p,
               const MotionSweep& sweep, const Motion* virt, const Motion* virt_rate,
               Arena& arena) {
  Pair pair{pair_dofs(m, d, body[0], body[1], p, arena), {}, nullptr};
  const ContactDofs& c = pair.c;
  PairDof* dof = arena.take<PairDof>(c.n);
  for (int k = 0; k < c.n; k++) {
    const int id = c.dofs[k];
    const Vec3 offset = c.offset[c.moves[k] >> 1];
    dof[k] = {c.axis[k], about(load_motion(d.cdof_dot + 6 * id), offset),
              about(sweep.rates[id].second, offset), about(sweep.rates[id].sum, offset), Motion{}};
    if (virt_rate) dof[k].axis_virtual = about(virt_rate[id], offset);
  }
  pair.dof = dof;
  for (int s = 0; s < 2; s++) {
    const Vec3 offset = c.offset[s];
    pair.at.velocity.of[s] = about(load_motion(d.cvel + 6 * c.body[s]), offset);
    pair.at.acceleration.of[s] = about(sweep.acceleration[c.body[s]], offset);
    if (virt) pair.at.virt.of[s] = about(virt[c.body[s]], offset);
  }
  return pair;
}

void add_pair_function(const ModelView& m, const Pair& p, const PairFunction& f,
                       const QuadraticForm& form, Arena& arena) {
  const int n = p.c.n;
  const PairCotangent bar = f.derivative(PairState{});

  // the changes of the state and of the cotangents along all positions and velocities
  PairState* by = arena.take<PairState>(2 * n);
  CotangentChange* bent = arena.take<CotangentChange>(2 * n);
  for (int i = 0; i < 2 * n; i++) {
    by[i] = i < n ? along_q(p, i) : along_v(p, i - n);
    bent[i] = change(f.derivative(by[i]));
  }
  auto column = [&](int i) {
    return i < n ? form.q_column(p.c.dofs[i]) : form.v_column(p.c.dofs[i - n]);
  };
  for (int i = 0; i < 2 * n; i++) {
    // the derivatives of poses are symmetric up to brackets                               (CON-40)
    for (int j = 0; j < 2 * n; j++) {
      form.half_row(p.c.dofs[0], column(i))[column(j)] += 0.5 * product(by[j], bent[i]);
    }
    for (int k = 0; form.mixed && k < n; k++) {
      double sum = 0;
      for (int s = 0; s < 2; s++) {
        if (p.moves(k, s)) sum += dot(p.dof[k].axis, bent[i].acceleration[s]);
      }
      form.mixed[p.c.dofs[k]][column(i)] += sum;
    }
  }
  for (int k = 0; k < n; k++) {
    add_carried(m, p, k, carried_forces(p, k, by[k], by[n + k], bar), form);
  }
}

}  // namespace mujacobian

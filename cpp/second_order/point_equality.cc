#include "second_order/point_equality.h"

#include <cmath>

#include "constraint/point_equality.h"
#include "constraint/wrench.h"
#include "contact/wrench.h"
#include "second_order/impedance.h"
#include "spatial/dual.h"

namespace mujacobian {
namespace {

using Number = Dual<1>;
using Vec = Vec3T<Number>;

// A force of dual numbers, about the common point.
struct Cotangent {
  Vec ang{0, 0, 0}, lin{0, 0, 0};
};

Number with(double value, double derivative) {
  Number x(value);
  x.d[0] = derivative;
  return x;
}
Vec with(Vec3 value, Vec3 change) {
  return {with(value.x, change.x), with(value.y, change.y), with(value.z, change.z)};
}
MotionT<Number> with(Motion value, Motion change) {
  return {with(value.ang, change.ang), with(value.lin, change.lin)};
}
Vec3 change(const Vec& x) { return {x.x.d[0], x.y.d[0], x.z.d[0]}; }
Vec3 value(const Vec& x) { return {x.x.v, x.y.v, x.z.v}; }
Force change(const Cotangent& x) { return {change(x.ang), change(x.lin)}; }
Force value(const Cotangent& x) { return {value(x.ang), value(x.lin)}; }

// Numbers of an equality that do not depend on the state of its bodies.
struct Constants {
  bool weld;
  int count;
  double scale;  // torquescale
  double damping;
  double D[kMaxRows];
  // k imp and D, relative to its value, as functions of the length of the position; then their
  // slopes divided by this length, all with their derivatives
  double length;
  double spring[2], spring_ratio[2], scaling[2], scaling_ratio[2];
};

// The motions of both bodies about the common point.
struct BodyPair {
  Motion of[2];
};

// The state of the two bodies, or its change along one variable: poses (as motions), velocities,
// accelerations with those of the joints, and virtual velocities.
struct PairState {
  BodyPair pose, velocity, acceleration, virt;
};

// The derivative of the power with respect to these.
struct PairCotangent {
  Cotangent pose[2], velocity[2], acceleration[2], virt[2];
};

constexpr double kSign[2] = {1, -1};

// The points, the second frame and the error of an equality after a change of the poses.
struct Geometry {
  Vec r[2];  // from the common point
  Mat3T<Number> frame;
  Number w;  // of the error quaternion
  Vec v;
};

Geometry moved_geometry(const PointEquality& h, const Vec3 r[2], const BodyPair& by) {
  Geometry g;
  for (int s = 0; s < 2; s++) g.r[s] = with(r[s], at_point(by.of[s], r[s]));
  if (!h.weld) return g;
  const Vec3 turn = by.of[1].ang, apart = transpose_mul(h.frame1, by.of[0].ang - turn);
  const Mat3 turned = skew(turn) * h.frame1;
  for (int i = 0; i < 9; i++) g.frame.m[i] = with(h.frame1.m[i], turned.m[i]);
  const Quaternion e = h.error;
  g.w = with(e.w, -0.5 * dot(apart, e.v));
  g.v = with(e.v, 0.5 * (e.w * apart + cross(apart, e.v)));
  return g;
}

// The rows of one motion of the bodies, and their cotangents.
struct Rows {
  Vec point{0, 0, 0}, turn{0, 0, 0};
};

Number dot(const Rows& a, const Rows& b) { return dot(a.point, b.point) + dot(a.turn, b.turn); }
Rows operator+(const Rows& a, const Rows& b) { return {a.point + b.point, a.turn + b.turn}; }
Rows operator*(const Number& s, const Rows& a) { return {s * a.point, s * a.turn}; }

// The power of an equality and its derivative.                                   (HES-36, HES-37)
class Power {
 public:
  Power(const Constants& c, const Geometry& g) : c_(c), g_(g) {}

  PairCotangent derivative(const PairState& at, const PairState& by) {
    for (int s = 0; s < 2; s++) {
      velocity_[s] = with(at.velocity.of[s], by.velocity.of[s]);
      acceleration_[s] = with(at.acceleration.of[s], by.acceleration.of[s]);
      virtual_[s] = with(at.virt.of[s], by.virt.of[s]);
    }
    // the rows J mu and J a - aref
    const Rows pos = position();
    const Number length = sqrt(dot(pos, pos));
    const Number spring = along(c_.spring, length);
    const Rows w = rows(virtual_);
    const Rows x =
        rows(acceleration_) + Number(c_.damping) * rows(velocity_) + bias() + spring * pos;

    // their cotangents
    const Number scaling = along(c_.scaling, length);
    const Rows stiff = stiffness(x);
    const Rows x_bar = scaling * stiffness(w), w_bar = scaling * stiff;
    const Number inward = along(c_.scaling_ratio, length) * dot(w, stiff) +
                          along(c_.spring_ratio, length) * dot(x_bar, pos);

    // through the rows to the bodies
    add_rows(virtual_, w_bar, bar_.virt);
    add_rows(acceleration_, x_bar, bar_.acceleration);
    add_rows(velocity_, Number(c_.damping) * x_bar, bar_.velocity);
    add_bias(x_bar);
    add_position(spring * x_bar + inward * pos);
    for (int s = 0; s < 2; s++) {
      bar_.pose[s].lin = point_[s];
      bar_.pose[s].ang = cross(g_.r[s], point_[s]) + kSign[s] * apart_;
    }
    bar_.pose[1].ang += turn_;
    return bar_;
  }

 private:
  // f(length) from its value and its derivative
  Number along(const double f[2], const Number& length) const {
    return with(f[0], f[1] * length.d[0]);
  }

  Rows stiffness(const Rows& x) const {
    const double* D = c_.D;
    Rows y{{D[0] * x.point.x, D[1] * x.point.y, D[2] * x.point.z}};
    if (c_.weld) y.turn = {D[3] * x.turn.x, D[4] * x.turn.y, D[5] * x.turn.z};
    return y;
  }

  Rows position() const {
    Rows pos{g_.r[0] - g_.r[1]};
    if (c_.weld) pos.turn = c_.scale * g_.v;
    return pos;
  }

  // Returns r(e, R_1^T w) for an angular motion w.                                        (ROW-7)
  Vec turn_row(const Vec& w) const {
    const Vec u = transpose_mul(g_.frame, w);
    return (0.5 * c_.scale) * (g_.w * u + cross(u, g_.v));
  }
  // Returns the torque of forces in these rows, in world axes.
  Vec torque(const Vec& f) const {
    return g_.frame * ((0.5 * c_.scale) * (g_.w * f + cross(g_.v, f)));
  }

  Rows rows(const MotionT<Number> y[2]) const {
    Rows r{at_point(y[0], g_.r[0]) - at_point(y[1], g_.r[1])};
    if (c_.weld) r.turn = turn_row(y[0].ang - y[1].ang);
    return r;
  }

  // Jdot v without the accelerations of the bodies                                        (HES-36)
  Rows bias() const {
    Rows r;
    for (int s = 0; s < 2; s++) {
      r.point += kSign[s] * cross(velocity_[s].ang, at_point(velocity_[s], g_.r[s]));
    }
    if (!c_.weld) return r;
    const Vec spin = velocity_[0].ang - velocity_[1].ang;
    r.turn = turn_row(cross(velocity_[0].ang, velocity_[1].ang)) -
             (0.25 * c_.scale) * dot(spin, spin) * g_.v;
    return r;
  }

  // Adds the derivative of f . r(e, R_1^T w) with respect to the poses.
  void add_turn_pose(const Vec& w, const Vec& f) {
    const Vec u = transpose_mul(g_.frame, w), across = cross(f, u);
    turn_ += cross(torque(f), w);
    apart_ +=
        g_.frame * ((0.25 * c_.scale) * (g_.w * across + cross(g_.v, across) - dot(f, u) * g_.v));
  }

  // Adds the derivative of f . e_v with respect to the poses.
  void add_error_pose(const Vec& f) { apart_ += g_.frame * (0.5 * (g_.w * f + cross(g_.v, f))); }

  void add_rows(const MotionT<Number> y[2], const Rows& f, Cotangent bar[2]) {
    const Vec t = c_.weld ? torque(f.turn) : Vec{0, 0, 0};
    for (int s = 0; s < 2; s++) {
      bar[s].lin += kSign[s] * f.point;
      bar[s].ang += kSign[s] * (cross(g_.r[s], f.point) + t);
      point_[s] += kSign[s] * cross(f.point, y[s].ang);
    }
    if (c_.weld) add_turn_pose(y[0].ang - y[1].ang, f.turn);
  }

  void add_bias(const Rows& f) {
    for (int s = 0; s < 2; s++) {
      const Vec w = velocity_[s].ang, v = at_point(velocity_[s], g_.r[s]);
      const Vec force = kSign[s] * f.point, v_bar = cross(force, w);
      bar_.velocity[s].lin += v_bar;
      bar_.velocity[s].ang += cross(v, force) + cross(g_.r[s], v_bar);
      point_[s] += cross(v_bar, w);
    }
    if (!c_.weld) return;
    const Vec w0 = velocity_[0].ang, w1 = velocity_[1].ang, spin = w0 - w1, t = torque(f.turn);
    bar_.velocity[0].ang += cross(w1, t);
    bar_.velocity[1].ang += cross(t, w0);
    add_turn_pose(cross(w0, w1), f.turn);
    const Number error = (0.5 * c_.scale) * dot(f.turn, g_.v);
    bar_.velocity[0].ang += -error * spin;
    bar_.velocity[1].ang += error * spin;
    add_error_pose((-0.25 * c_.scale) * dot(spin, spin) * f.turn);
  }

  void add_position(const Rows& f) {
    for (int s = 0; s < 2; s++) point_[s] += kSign[s] * f.point;
    if (c_.weld) add_error_pose(c_.scale * f.turn);
  }

  const Constants& c_;
  const Geometry& g_;
  MotionT<Number> velocity_[2], acceleration_[2], virtual_[2];
  PairCotangent bar_{};
  Vec point_[2] = {{0, 0, 0}, {0, 0, 0}};  // cotangents of the points
  Vec turn_{0, 0, 0}, apart_{0, 0, 0};     // of the second frame, and of its distance to the first
};

Constants constants(const ModelView& m, const DataView& d, const Block& b, const PointEquality& h) {
  Constants c{};
  c.weld = h.weld, c.count = b.count;
  if (h.weld) c.scale = h.scale;
  const double *kbip = d.efc_KBIP + 4 * b.row, *solimp = m.eq_solimp + kNImp * b.id;
  c.damping = kbip[1];
  for (int r = 0; r < b.count; r++) {
    c.D[r] = d.efc_D[b.row + r];
    c.length += d.efc_pos[b.row + r] * d.efc_pos[b.row + r];
  }
  c.length = std::sqrt(c.length);
  const LengthImpedance i = length_impedance(m, d, b, solimp, c.length);
  c.spring[0] = kbip[0] * i.imp[0], c.spring[1] = kbip[0] * i.imp[1];
  c.spring_ratio[0] = kbip[0] * i.imp_ratio[0], c.spring_ratio[1] = kbip[0] * i.imp_ratio[1];
  c.scaling[0] = i.scale[0], c.scaling[1] = i.scale[1];
  c.scaling_ratio[0] = i.scale_ratio[0], c.scaling_ratio[1] = i.scale_ratio[1];
  return c;
}

// One dof of the pair: its axis and the rates of its axis, about the common point.
struct PairDof {
  Motion axis, axis_dot, second, sum, axis_virtual;
};

// The motions of an equality and its dofs.
struct Pair {
  const ContactDofs& c;
  PairState at;
  const PairDof* dof;

  bool moves(int k, int s) const { return c.moves[k] >> s & 1; }
};

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
    form.mixed[dof][form.q_column(other)] += dot(axis, f.both);
    if (l == k || joint) continue;
    form.v(other)[form.q_column(dof)] += dot(axis, f.q_dot);
    form.v(other)[form.v_column(dof)] += dot(axis, f.both);
  }
}

void add_hessian(const ModelView& m, const Pair& p, const PointEquality& h, const Constants& c,
                 const Vec3 r[2], const QuadraticForm& form, Arena& arena) {
  const int n = p.c.n;
  const PairState still{};
  const Geometry here = moved_geometry(h, r, still.pose);
  const PairCotangent bar = Power(c, here).derivative(p.at, still);

  // the changes of the state and of the cotangents along all positions and velocities
  PairState* by = arena.take<PairState>(2 * n);
  CotangentChange* bent = arena.take<CotangentChange>(2 * n);
  for (int i = 0; i < 2 * n; i++) {
    by[i] = i < n ? along_q(p, i) : along_v(p, i - n);
    const Geometry there = moved_geometry(h, r, by[i].pose);
    bent[i] = change(Power(c, there).derivative(p.at, by[i]));
  }
  auto column = [&](int i) {
    return i < n ? form.q_column(p.c.dofs[i]) : form.v_column(p.c.dofs[i - n]);
  };
  for (int i = 0; i < 2 * n; i++) {
    // the derivatives of poses are symmetric up to brackets                               (CON-40)
    for (int j = 0; j < 2 * n; j++) {
      form.half_row(p.c.dofs[0], column(i))[column(j)] += 0.5 * product(by[j], bent[i]);
    }
    for (int k = 0; k < n; k++) {
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

}  // namespace

void add_point_equality_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                                 const double* acc, const double* mu, const QuadraticForm& form,
                                 Arena& arena) {
  const MotionSweep* sweep = nullptr;
  BlockMotion virt;
  for (int i = 0; i < blocks.count; i++) {
    const Block& b = blocks.block[i];
    if (!is_point_equality(m, b) || !b.active || b.n == 0) continue;
    if (!sweep) {
      sweep =
          new (arena.take<MotionSweep>(1)) MotionSweep(sweep_motion(m, d, acc, {0, 0, 0}, arena));
      virt = block_motion(m, d, blocks, mu, arena);
    }

    // motions and axes about the second point
    const PointEquality h = point_equality(m, d, b.id);
    Vec3 world[2];
    for (int s = 0; s < 2; s++) {
      const int root = m.body_rootid[h.point[s].body];
      world[s] = h.point[s].offset + load3(d.subtree_com + 3 * root);
    }
    const ContactDofs c = pair_dofs(m, d, h.point[0].body, h.point[1].body, world[1], arena);
    const Vec3 r[2] = {world[0] - world[1], {0, 0, 0}};
    PairDof* dof = arena.take<PairDof>(c.n);
    for (int k = 0; k < c.n; k++) {
      const int id = c.dofs[k];
      const Vec3 offset = c.offset[c.moves[k] >> 1];
      dof[k] = {c.axis[k], about(load_motion(d.cdof_dot + 6 * id), offset),
                about(sweep->rates[id].second, offset), about(sweep->rates[id].sum, offset),
                about(virt.moved_rate[id], offset)};
    }
    Pair p{c, {}, dof};
    for (int s = 0; s < 2; s++) {
      const int body = c.body[s];
      p.at.velocity.of[s] = about(load_motion(d.cvel + 6 * body), c.offset[s]);
      p.at.acceleration.of[s] = about(sweep->acceleration[body], c.offset[s]);
      p.at.virt.of[s] = about(virt.moved[body], c.offset[s]);
    }
    add_hessian(m, p, h, constants(m, d, b, h), r, form, arena);
  }
}

}  // namespace mujacobian

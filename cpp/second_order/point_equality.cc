#include "second_order/point_equality.h"

#include <cmath>

#include "constraint/point_equality.h"
#include "constraint/wrench.h"
#include "contact/wrench.h"
#include "second_order/body_pair.h"
#include "second_order/impedance.h"

namespace mujacobian {
namespace {

using Number = PairNumber;
using Vec = PairVec;
using Cotangent = PairForce;

// Numbers of an equality that do not depend on the state of its bodies.
struct Constants {
  bool weld;
  double scale;  // torquescale
  double damping;
  double D[kMaxRows];
  // k imp and D, relative to its value, as functions of the length of the position; then their
  // slopes divided by this length, all with their derivatives
  double spring[2], spring_ratio[2], scaling[2], scaling_ratio[2];
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
    return finished();
  }

  // Returns the derivative of the rows of the virtual velocities, times these weights.
  PairCotangent row_derivative(const PairState& at, const PairState& by, const double* weights) {
    for (int s = 0; s < 2; s++) virtual_[s] = with(at.virt.of[s], by.virt.of[s]);
    const double* w = weights;
    Rows f{{w[0], w[1], w[2]}};
    if (c_.weld) f.turn = {w[3], w[4], w[5]};
    add_rows(virtual_, f, bar_.virt);
    return finished();
  }

 private:
  // Returns the cotangents with those of the poses.
  PairCotangent finished() {
    for (int s = 0; s < 2; s++) {
      bar_.pose[s].lin = point_[s];
      bar_.pose[s].ang = cross(g_.r[s], point_[s]) + kSign[s] * apart_;
    }
    bar_.pose[1].ang += turn_;
    return bar_;
  }

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
  c.weld = h.weld;
  if (h.weld) c.scale = h.scale;
  const double *kbip = d.efc_KBIP + 4 * b.row, *solimp = m.eq_solimp + kNImp * b.id;
  c.damping = kbip[1];
  double square = 0;
  for (int r = 0; r < b.count; r++) {
    c.D[r] = d.efc_D[b.row + r];
    square += d.efc_pos[b.row + r] * d.efc_pos[b.row + r];
  }
  const LengthImpedance i = length_impedance(m, d, b, solimp, std::sqrt(square));
  c.spring[0] = kbip[0] * i.imp[0], c.spring[1] = kbip[0] * i.imp[1];
  c.spring_ratio[0] = kbip[0] * i.imp_ratio[0], c.spring_ratio[1] = kbip[0] * i.imp_ratio[1];
  c.scaling[0] = i.scale[0], c.scaling[1] = i.scale[1];
  c.scaling_ratio[0] = i.scale_ratio[0], c.scaling_ratio[1] = i.scale_ratio[1];
  return c;
}

// An equality with the pair of its bodies about its second point.
struct EqualityPair {
  PointEquality h;
  Constants c;
  Vec3 r[2];  // its points from the second one
  Pair p;
};

EqualityPair equality_pair(const ModelView& m, const DataView& d, const Block& b,
                           const MotionSweep& sweep, const VirtualMotion& virt, Arena& arena) {
  const PointEquality h = point_equality(m, d, b.id);
  const int body[2] = {h.point[0].body, h.point[1].body};
  Vec3 world[2];
  for (int s = 0; s < 2; s++) {
    world[s] = h.point[s].offset + load3(d.subtree_com + 3 * m.body_rootid[body[s]]);
  }
  return {h,
          constants(m, d, b, h),
          {world[0] - world[1], {0, 0, 0}},
          make_pair(m, d, body, world[1], sweep, virt.moved, virt.rate, arena)};
}

// The power of an equality as a function of the state of its bodies, or the rows of the virtual
// velocities, times weights.
class EqualityFunction : public PairFunction {
 public:
  explicit EqualityFunction(const EqualityPair& e, const double* weights = nullptr)
      : e_(e), weights_(weights) {}

  PairCotangent derivative(const PairState& by) const override {
    const Geometry moved = moved_geometry(e_.h, e_.r, by.pose);
    Power power(e_.c, moved);
    return weights_ ? power.row_derivative(e_.p.at, by, weights_) : power.derivative(e_.p.at, by);
  }

 private:
  const EqualityPair& e_;
  const double* weights_;
};

}  // namespace

void add_point_equality_hessian(const ModelView& m, const DataView& d, const Block& b,
                                const MotionSweep& sweep, const VirtualMotion& virt,
                                const QuadraticForm& form, Arena& arena) {
  const EqualityPair e = equality_pair(m, d, b, sweep, virt, arena);
  add_pair_function(m, e.p, EqualityFunction(e), form, arena);
}

void add_point_equality_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                                 const double* acc, const double* mu, const QuadraticForm& form,
                                 Arena& arena) {
  const MotionSweep* sweep = nullptr;
  VirtualMotion virt;
  for (int i = 0; i < blocks.count; i++) {
    const Block& b = blocks.block[i];
    if (!is_point_equality(m, b) || !b.active || b.n == 0) continue;
    if (!sweep) {
      sweep =
          new (arena.take<MotionSweep>(1)) MotionSweep(sweep_motion(m, d, acc, {0, 0, 0}, arena));
      virt = virtual_motion(m, d, blocks, mu, arena);
    }
    add_point_equality_hessian(m, d, b, *sweep, virt, form, arena);
  }
}

void add_point_equality_power(const ModelView& m, const DataView& d, const Blocks& blocks,
                              const Block& b, const double* weights, const double* y,
                              const QuadraticForm& form, Arena& arena) {
  const MotionSweep sweep = sweep_motion(m, d, nullptr, {0, 0, 0}, arena);
  const VirtualMotion virt = virtual_motion(m, d, blocks, y, arena);
  const EqualityPair e = equality_pair(m, d, b, sweep, virt, arena);
  QuadraticForm still = form;
  still.mixed = nullptr;
  add_pair_function(m, e.p, EqualityFunction(e, weights), still, arena);
}

}  // namespace mujacobian

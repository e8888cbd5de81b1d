// Sensors of frames: poses, velocities and accelerations, also relative to another frame.
#include "layout/enums.h"
#include "second_order/sensor_form.h"
#include "sensor/camera.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// The variables of a frame that sensors are functions of. Velocities and accelerations are those of
// the body, at the position and in the axes of the frame.                                 (HSE-3)
enum Variable { kTurn, kPlace, kAngVel, kLinVel, kAngAcc, kLinAcc, kVariables };

// A dof and its axes, as in KIN-4 to KIN-7.
struct Axis {
  int dof;
  Motion axis, axis_dot, second, sum;
};

bool is_zero(Vec3 a) { return a.x == 0 && a.y == 0 && a.z == 0; }
bool is_zero(Force f) { return is_zero(f.ang) && is_zero(f.lin); }

// A frame, the dofs that move it, and the slope of the sensor with respect to its variables.
struct Mover {
  Frame frame;
  Axis* axes;
  Motion velocity;  // of the body
  Vec3 slope[kVariables];

  // Returns a motion of the body at the position and in the axes of the frame.
  Motion local(Motion x) const {
    return {transpose_mul(frame.axes, x.ang),
            transpose_mul(frame.axes, at_point(x, frame.point.offset))};
  }
  // Returns the force about the reference point that has the same product with a motion as two
  // slopes with the motion in the axes of the frame.
  Force force(int angular, int linear) const {
    const Vec3 pull = frame.axes * slope[linear];
    return {frame.axes * slope[angular] + cross(frame.point.offset, pull), pull};
  }
};

// A variable of one of the two frames, the object (0) or the reference (1).
struct Place {
  int frame;
  Variable variable;
};

// A vector in the axes of the world. It turns with a frame, and depends on a variable.
struct Turned {
  Vec3 value;
  int frame = -1;  // -1: none
  Place of{-1, kVariables};
  Mat3 slope{};  // with respect to that variable
};

// A sensor as a function of the variables of two frames.
class Function {
 public:
  Function(Sensing& s, bool accelerates) : s_(s), accelerates_(accelerates) {}

  Mover mover[2];
  int count = 0;

  void add_frame(int type, int id) {
    Mover& x = mover[count++];
    x = {};
    x.frame = make_frame(s_, type, id);
    x.velocity = load_motion(s_.d.cvel + 6 * x.frame.point.body);
    x.axes = s_.arena.take<Axis>(x.frame.n);
    for (int i = 0; i < x.frame.n; i++) {
      const int k = x.frame.dofs[i];
      const DofRates rates = accelerates_ ? s_.motion().rates[k] : DofRates{};
      x.axes[i] = {k, dof_axis(s_.d, k), load_motion(s_.d.cdof_dot + 6 * k), rates.second,
                   rates.sum};
    }
  }

  void add_slope(Place at, Vec3 slope) { mover[at.frame].slope[at.variable] += slope; }

  // Adds the second derivative a^T M b with respect to two variables; if they are the same, M is
  // symmetric.
  void add_block(Place a, Place b, const Mat3& M) { blocks_[block_count_++] = {a, b, M}; }

  // Adds the product of two vectors.                                                      (HSE-4)
  void add_product(Turned x, Turned y) {
    if (x.frame == y.frame) x.frame = y.frame = -1;  // both turn together
    if (x.of.frame >= 0) add_slope(x.of, transpose_mul(x.slope, y.value));
    if (y.of.frame >= 0) add_slope(y.of, transpose_mul(y.slope, x.value));
    if (x.of.frame >= 0 && y.of.frame >= 0) {
      add_block(x.of, y.of, transposed(x.slope) * y.slope);
    }
    const double product = dot(x.value, y.value);
    auto turn = [&](const Turned& turned, const Turned& other) {
      if (turned.frame < 0) return;
      const Place at{turned.frame, kTurn};
      const Mat3 both = outer(turned.value, other.value);
      add_slope(at, cross(turned.value, other.value));
      add_block(at, at, 0.5 * (both + transposed(both)) + (-product) * identity3());
      if (other.of.frame >= 0) add_block(at, other.of, skew(turned.value) * other.slope);
      if (turned.of.frame >= 0)
        add_block(at, turned.of, (-1.0) * (skew(other.value) * turned.slope));
    };
    turn(x, y);
    turn(y, x);
    if (x.frame >= 0 && y.frame >= 0) {
      add_block({x.frame, kTurn}, {y.frame, kTurn},
                product * identity3() + (-1.0) * outer(y.value, x.value));
    }
  }

  // Adds the second derivatives with respect to the dofs.
  void finish(SensorForm& form) const {
    for (int b = 0; b < block_count_; b++) write_block(blocks_[b], form);
    for (int f = 0; f < count; f++) write_frame(mover[f], form);
  }

 private:
  struct Block {
    Place a, b;
    Mat3 M;
  };
  static constexpr int kMaxBlocks = 32;

  // The derivatives of a variable with respect to the dofs.
  struct Slopes {
    int n;
    DofVariable* by;
    Vec3* value;
  };

  Slopes slopes(Place at) const {
    const Mover& x = mover[at.frame];
    const bool linear = at.variable == kLinVel || at.variable == kLinAcc;
    Slopes r{0, s_.arena.take<DofVariable>(3 * x.frame.n), s_.arena.take<Vec3>(3 * x.frame.n)};
    auto put = [&](DofVariable::Kind kind, int dof, Vec3 value) {
      r.by[r.n] = {kind, dof}, r.value[r.n++] = value;
    };
    auto put_motion = [&](DofVariable::Kind kind, int dof, Motion value) {
      const Motion local = x.local(value);
      put(kind, dof, linear ? local.lin : local.ang);
    };
    for (int i = 0; i < x.frame.n; i++) {
      const Axis& k = x.axes[i];
      switch (at.variable) {
        case kTurn:
          put(DofVariable::kPosition, k.dof, x.frame.turned[i]);
          break;
        case kPlace:
          put(DofVariable::kPosition, k.dof, x.frame.moved[i]);
          break;
        case kAngVel:
        case kLinVel:
          put_motion(DofVariable::kPosition, k.dof, k.axis_dot);
          put_motion(DofVariable::kVelocity, k.dof, k.axis);
          break;
        default:
          put_motion(DofVariable::kPosition, k.dof, k.second + cross(k.axis_dot, x.velocity));
          put_motion(DofVariable::kVelocity, k.dof, k.sum + cross(k.axis, x.velocity));
          put_motion(DofVariable::kAcceleration, k.dof, k.axis);
      }
    }
    return r;
  }

  void write_block(const Block& b, SensorForm& form) const {
    const bool same = b.a.frame == b.b.frame && b.a.variable == b.b.variable;
    const Slopes x = slopes(b.a), y = same ? x : slopes(b.b);
    for (int j = 0; j < y.n; j++) {
      const Vec3 along = b.M * y.value[j];
      for (int i = 0; i < (same ? j + 1 : x.n); i++) {
        const bool square = x.by[i].kind == y.by[j].kind && x.by[i].dof == y.by[j].dof;
        const double value = dot(x.value[i], along);
        form.add(x.by[i], y.by[j], square && !same ? 2 * value : value);
      }
    }
  }

  // The factors of (HSE-5) that depend on dof k: forces and a vector whose products with the axes
  // of dof l are the second derivatives. A product (l x k) . F of motions and a force is l . (k x*
  // F).
  struct Below {
    Force rate, acc;
    Vec3 pose;
  };

  // Adds the second derivatives of the variables with respect to the dofs, times their slopes.
  // (HSE-5)
  void write_frame(const Mover& x, SensorForm& form) const {
    const Force by_velocity = x.force(kAngVel, kLinVel), by_acc = x.force(kAngAcc, kLinAcc);
    const Vec3 turn = 0.5 * x.slope[kTurn], place = x.slope[kPlace];
    const bool moving = !is_zero(by_velocity) || !is_zero(by_acc);
    Below* below = s_.arena.take<Below>(x.frame.n);
    for (int j = 0; j < x.frame.n; j++) {
      const Axis& k = x.axes[j];
      below[j].pose = cross(k.axis.ang, turn) + cross(x.frame.moved[j], place);
      if (!moving) continue;
      below[j].rate =
          cross(k.axis, by_velocity + cross(x.velocity, by_acc)) + cross(k.axis_dot, by_acc);
      below[j].acc = cross(k.axis, by_acc);
      if (accelerates_) form.add_acceleration(k.dof, dot(k.axis, by_acc));
    }
    moving ? write_motion(x, below, form) : write_pose(x, below, form);
  }

  // The part of `write_frame` of sensors that depend on positions only.
  void write_pose(const Mover& x, const Below* below, SensorForm& form) const {
    auto entry = [&](int i, int j) { return dot(x.axes[i].axis.ang, below[j].pose); };
    for (int j = 0; j < x.frame.n; j++)
      for (int i = 0; i <= j; i++) {
        add_position_pair(
            s_.m, x.axes[i].dof, x.axes[j].dof, entry(i, j), [&] { return entry(j, i); }, form);
      }
  }

  // The part of `write_frame` of all other sensors.
  void write_motion(const Mover& x, const Below* below, SensorForm& form) const {
    auto entry = [&](const Axis& l, const Below& k, DofVariable::Kind first,
                     DofVariable::Kind second) {
      constexpr auto q = DofVariable::kPosition, v = DofVariable::kVelocity;
      if (first == q && second == q) {
        return dot(l.axis_dot, k.rate) + dot(l.second, k.acc) + dot(l.axis.ang, k.pose);
      }
      if (first == v && second == q) return dot(l.axis, k.rate) + dot(l.sum, k.acc);
      return dot(first == q ? l.axis_dot : l.axis, k.acc);
    };
    for (int j = 0; j < x.frame.n; j++)
      for (int i = 0; i <= j; i++) {
        const Axis &l = x.axes[i], &k = x.axes[j];
        add_chain_pair(
            s_.m, l.dof, k.dof, accelerates_,
            [&](auto a, auto b) { return entry(l, below[j], a, b); },
            [&](auto a, auto b) { return entry(k, below[i], a, b); }, form);
      }
  }

  Sensing& s_;
  bool accelerates_;
  Block blocks_[kMaxBlocks];
  int block_count_ = 0;
};

// The value of a variable of a frame, in the axes of the frame.
Motion local_velocity(const Function& f, int frame) {
  return f.mover[frame].local(f.mover[frame].velocity);
}
Motion local_acceleration(Sensing& s, const Function& f, int frame) {
  return f.mover[frame].local(s.motion().acceleration[f.mover[frame].frame.point.body]);
}

// A vector that is given in the axes of a frame, and equal to a variable or constant.
Turned carried(const Function& f, int frame, Vec3 local) {
  return {f.mover[frame].frame.axes * local, frame};
}
Turned carried(const Function& f, int frame, Variable variable, Vec3 local) {
  const Mat3& axes = f.mover[frame].frame.axes;
  return {axes * local, frame, {frame, variable}, axes};
}

// Adds the product of `weight` with the position of the object relative to the reference.
void add_offset_product(Function& f, const Turned& weight) {
  for (int k = 0; k < 2; k++) {
    const double sign = k ? -1 : 1;
    f.add_product(weight, {sign * f.mover[k].frame.position, -1, {k, kPlace}, sign * identity3()});
  }
}

// The image is a function of the position x of the site in the axes of the camera.        (HSE-19)
void add_projection(Sensing& s, int sensor, Function& f, const double* weights) {
  const auto& [focal, x] = project(s, sensor, f.mover[0].frame, f.mover[1].frame);
  const double u = -weights[0] * focal.x / x.z, v = weights[1] * focal.y / x.z;
  const double depth = (u * x.x + v * x.y) / x.z;
  add_offset_product(f, carried(f, 1, {u, v, -depth}));

  // products of first derivatives: x changes by R^T (dp_0 - dp_1 + span x turn)
  Mat3 second{};
  second(0, 2) = second(2, 0) = -u / x.z;
  second(1, 2) = second(2, 1) = -v / x.z;
  second(2, 2) = 2 * depth / x.z;
  const Mat3& axes = f.mover[1].frame.axes;
  const Mat3 world = axes * second * transposed(axes);
  const Mat3 arm = skew(f.mover[0].frame.position - f.mover[1].frame.position);
  const Mat3 turned = transposed(arm) * world;
  const Place site{0, kPlace}, camera{1, kPlace}, turn{1, kTurn};
  f.add_block(site, site, world);
  f.add_block(camera, camera, world);
  f.add_block(site, camera, (-1.0) * world);
  f.add_block(turn, turn, turned * arm);
  f.add_block(turn, site, turned);
  f.add_block(turn, camera, (-1.0) * turned);
}

// The weights as a vector that turns with the reference, if there is one.
Turned weight_vector(const Function& f, Vec3 weights) {
  return f.count == 2 ? carried(f, 1, weights) : Turned{weights};
}

void add_velocity(Function& f, bool linear, Vec3 weights) {
  const Turned weight = weight_vector(f, weights);
  const Motion v = local_velocity(f, 0);
  f.add_product(weight, linear ? carried(f, 0, kLinVel, v.lin) : carried(f, 0, kAngVel, v.ang));
  if (f.count == 1) return;
  f.add_slope({1, linear ? kLinVel : kAngVel}, -weights);
  if (!linear) return;
  // - weights . (w_ref x offset)
  const Mat3& axes = f.mover[1].frame.axes;
  const Vec3 arm = cross(local_velocity(f, 1).ang, weights);
  add_offset_product(f, {axes * arm, 1, {1, kAngVel}, (-1.0) * (axes * skew(weights))});
}

// The left factor of a quaternion times the derivative with respect to the rotation of the object,
// minus that of the reference.                                                            (HSE-6)
void add_quaternion(Sensing& s, int sensor, Function& f, const double* weights) {
  const ModelView& m = s.m;
  const Quaternion right =
      object_quaternion(m, s.d, m.sensor_objtype[sensor], m.sensor_objid[sensor]);
  Quaternion left{1, {0, 0, 0}};
  if (f.count == 2) {
    left = conjugate(object_quaternion(m, s.d, m.sensor_reftype[sensor], m.sensor_refid[sensor]));
  }
  auto weighted = [&](Quaternion middle) {
    const Quaternion r = left * middle * right;
    return weights[0] * r.w + dot(load3(weights + 1), r.v);
  };
  auto turn = [&](int k) { return Quaternion{0, 0.5 * unit3(k)}; };
  const Vec3 slope{weighted(turn(0)), weighted(turn(1)), weighted(turn(2))};
  const Mat3 square = (-0.25 * weighted({1, {0, 0, 0}})) * identity3();
  f.add_slope({0, kTurn}, slope);
  f.add_block({0, kTurn}, {0, kTurn}, square);
  if (f.count == 1) return;
  Mat3 mixed;
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) mixed(a, b) = -weighted(turn(a) * turn(b));
  f.add_slope({1, kTurn}, -slope);
  f.add_block({1, kTurn}, {1, kTurn}, square);
  f.add_block({1, kTurn}, {0, kTurn}, mixed);
}

// The acceleration of a point is that of the body at the point, and w x v. Its product with a
// vector that turns with the frame, or is fixed in the world.                             (HSE-7)
void add_acceleration(Sensing& s, Function& f, bool linear, const Turned& weight) {
  const Motion a = local_acceleration(s, f, 0), v = local_velocity(f, 0);
  if (!linear) return f.add_product(weight, carried(f, 0, kAngAcc, a.ang));
  f.add_product(weight, carried(f, 0, kLinAcc, a.lin));
  const Mat3& axes = f.mover[0].frame.axes;
  f.add_product(weight,
                {axes * cross(v.ang, v.lin), 0, {0, kAngVel}, (-1.0) * (axes * skew(v.lin))});
  f.add_product(weight, {{0, 0, 0}, 0, {0, kLinVel}, axes * skew(v.ang)});
  const Vec3 local = transpose_mul(axes, weight.value);
  f.add_block({0, kAngVel}, {0, kLinVel}, (-1.0) * skew(local));
}

}  // namespace

void add_frame_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const ModelView& m = s.m;
  const int type = m.sensor_type[sensor];
  const bool accelerates = type == sensor::kAccelerometer || type == sensor::kFrameLinAcc ||
                           type == sensor::kFrameAngAcc;
  Function f(s, accelerates);
  f.add_frame(m.sensor_objtype[sensor], m.sensor_objid[sensor]);
  if (m.sensor_refid[sensor] >= 0) f.add_frame(m.sensor_reftype[sensor], m.sensor_refid[sensor]);
  if (type == sensor::kCamProjection) {  // has two values
    add_projection(s, sensor, f, weights);
    return f.finish(form);
  }
  const Vec3 weight = load3(weights);
  switch (type) {
    case sensor::kFramePos:
      if (f.count == 2) {
        add_offset_product(f, carried(f, 1, weight));
      } else {
        f.add_slope({0, kPlace}, weight);
      }
      break;
    case sensor::kFrameQuat:
      add_quaternion(s, sensor, f, weights);
      break;
    case sensor::kFrameLinVel:
    case sensor::kFrameAngVel:
      add_velocity(f, type == sensor::kFrameLinVel, weight);
      break;
    case sensor::kVelocimeter:
      f.add_slope({0, kLinVel}, weight);
      break;
    case sensor::kGyro:
      f.add_slope({0, kAngVel}, weight);
      break;
    case sensor::kMagnetometer:
      f.add_product(carried(f, 0, weight), {load3(m.opt.magnetic.v)});
      break;
    case sensor::kAccelerometer:
      add_acceleration(s, f, true, carried(f, 0, weight));
      break;
    case sensor::kFrameLinAcc:
    case sensor::kFrameAngAcc:
      add_acceleration(s, f, type == sensor::kFrameLinAcc, {weight});
      break;
    default:
      f.add_product(weight_vector(f, weight), carried(f, 0, unit3(type - sensor::kFrameXAxis)));
  }
  f.finish(form);
}

}  // namespace mujacobian

#include "forces/fluid_element.h"

#include <algorithm>
#include <numbers>

#include "spatial/dual.h"
#include "spatial/jet.h"

namespace mujacobian {
namespace {

constexpr int kNext[3] = {1, 2, 0}, kAfter[3] = {2, 0, 1};

// Returns the drag of the box that has the same inertia as the body.
FluidBox make_box(const ModelView& m, int body) {
  // edge lengths, and the diameter of an equivalent sphere
  const double *inertia = m.body_inertia + 3 * body, mass = m.body_mass[body];
  double size[3], diameter = 0;
  for (int i = 0; i < 3; i++) {
    double extent = inertia[kNext[i]] + inertia[kAfter[i]] - inertia[i];
    size[i] = std::sqrt(6 * std::max(kMinVal, extent) / mass);
    diameter += size[i] / 3;
  }
  // coefficients of the torque, then of the force
  const double viscosity = std::max(0.0, m.opt.viscosity), density = std::max(0.0, m.opt.density);
  FluidBox box;
  for (int i = 0; i < 3; i++) {
    double a = size[kNext[i]], b = size[kAfter[i]];
    box.linear[i] = std::numbers::pi * diameter * diameter * diameter * viscosity;
    box.linear[3 + i] = 3 * std::numbers::pi * diameter * viscosity;
    box.quadratic[i] = density * size[i] * (a * a * a * a + b * b * b * b) / 64;
    box.quadratic[3 + i] = 0.5 * density * a * b;
  }
  return box;
}

// tie: rest in the metric of a fluid
double sign_of(double x) { return (x > 0) - (x < 0); }

double fourth(double x) { return x * x * x * x; }

FluidEllipsoid make_ellipsoid(const ModelView& m, int id) {
  // semi-axes
  const double* size = m.geom_size + 3 * id;
  double s[3] = {size[0], size[1], size[2]};
  int type = m.geom_type[id];
  if (type == geom::kSphere) s[1] = s[2] = s[0];
  if (type == geom::kCapsule) s[2] = size[1] + size[0], s[1] = s[0];
  if (type == geom::kCylinder) s[2] = size[1], s[1] = s[0];
  const double longest = std::max({s[0], s[1], s[2]}), shortest = std::min({s[0], s[1], s[2]});
  const double middle = s[0] + s[1] + s[2] - longest - shortest;

  // coefficients of the model
  const double* p = m.geom_fluid + kNFluid * id;
  FluidEllipsoid e;
  e.density = m.opt.density, e.viscosity = m.opt.viscosity;
  e.scale = p[0], e.blunt = p[1], e.slender = p[2], e.angular = p[3], e.kutta = p[4];
  e.magnus = p[5] * 4.0 / 3.0 * std::numbers::pi * s[0] * s[1] * s[2];

  // areas and moments of the shape
  e.widest = std::numbers::pi * longest * middle;
  const double diameter = 2.0 / 3.0 * (s[0] + s[1] + s[2]);
  e.drag = 3 * std::numbers::pi * diameter,
  e.torque = std::numbers::pi * diameter * diameter * diameter;
  const double most = 8.0 / 15.0 * std::numbers::pi * middle * fourth(longest);
  for (int i = 0; i < 3; i++) {
    double a = s[kNext[i]], b = s[kAfter[i]];
    e.mass[i] = p[6 + i], e.inertia[i] = p[9 + i];
    e.face[i] = a * a * b * b;
    double own = 8.0 / 15.0 * std::numbers::pi * s[i] * fourth(std::max(a, b));
    e.moment[i] = e.angular * own + e.slender * (most - own);
  }
  return e;
}

// Returns the quadratic drag for a projected area, over density and speed.
template <class T>
T drag_per_density(const FluidEllipsoid& e, const T& area) {
  return e.slender * e.widest + (e.blunt - e.slender) * area;
}

// Quantities of drag and lift at linear velocity u.
template <class T>
struct Flow {
  T square, num, den;              // u^2, sum E u^2, sum E^2 u^2
  T area;                          // projected along u
  T drag;                          // the drag is -drag u
  T lift;                          // the lift is lift (num u - square E u)
  T per_square, per_num, per_den;  // their reciprocals, zero at rest
};
template <class T>
Flow<T> make_flow(const FluidEllipsoid& e, const T u[3]) {
  using std::sqrt;
  Flow<T> f;
  f.square = f.num = f.den = f.area = f.lift = f.per_square = f.per_num = f.per_den = T(0.0);
  for (int i = 0; i < 3; i++) {
    T square = u[i] * u[i];
    f.square = f.square + square;
    f.num = f.num + e.face[i] * square;
    f.den = f.den + e.face[i] * e.face[i] * square;
  }
  f.drag = T(e.viscosity * e.drag);
  // tie: body at rest in a fluid
  if (value(f.den) == 0) return f;
  f.per_square = 1.0 / f.square, f.per_num = 1.0 / f.num, f.per_den = 1.0 / f.den;
  f.area = std::numbers::pi * sqrt(f.den * f.per_num);
  f.drag = f.drag + e.density * (sqrt(f.square) * drag_per_density(e, f.area));
  f.lift = std::numbers::pi * e.kutta * e.density * sqrt(f.num * f.per_den * f.per_square);
  return f;
}

Vec3 times(const double a[3], Vec3 b) { return {a[0] * b.x, a[1] * b.y, a[2] * b.z}; }

// Computes torque and force at local velocity v = (w, u).                                (FLU-5)
void ellipsoid_force(const FluidEllipsoid& e, const double v[6], double force[6]) {
  const Vec3 w = load3(v), u = load3(v + 3);
  const Vec3 momentum = e.density * times(e.mass, u), spin = e.density * times(e.inertia, w);
  const Flow<double> f = make_flow(e, v + 3);
  const double turn = e.viscosity * e.torque + e.density * norm(times(e.moment, w));
  const Vec3 lift = f.lift * (f.num * u - f.square * times(e.face, u));
  const Vec3 torque = cross(momentum, u) + cross(spin, w) - turn * w;
  const Vec3 push = cross(momentum, w) + e.density * e.magnus * cross(w, u) + lift - f.drag * u;
  store3(force, e.scale * torque);
  store3(force + 3, e.scale * push);
}

// Adds scale d(a x y), with a = weight .* x, to three rows of a 6x6 matrix. The integers x and y
// are the first columns of the two parts of v.
template <class T>
void add_cross_rate(double scale, const double weight[3], const T* v, int x, int y, T* rows) {
  for (int i = 0; i < 3; i++) {
    int j = kNext[i], k = kAfter[i];
    T* row = rows + 6 * i;
    row[x + j] = row[x + j] + scale * weight[j] * v[y + k];
    row[x + k] = row[x + k] - scale * weight[k] * v[y + j];
    row[y + k] = row[y + k] + scale * weight[j] * v[x + j];
    row[y + j] = row[y + j] - scale * weight[k] * v[x + k];
  }
}

// Computes d(torque, force)/dv without the scale of the element, which MuJoCo's integrators do not
// apply.                                                                                 (FLU-6)
template <class T>
void ellipsoid_rate(const FluidEllipsoid& e, const T v[6], T b[36]) {
  using std::sqrt;
  static constexpr double kOnes[3] = {1, 1, 1};
  const T *w = v, *u = v + 3;

  // added mass, added inertia and Magnus force
  for (int i = 0; i < 36; i++) b[i] = T(0.0);
  add_cross_rate(e.density, e.mass, v, 3, 3, b);
  add_cross_rate(e.density, e.inertia, v, 0, 0, b);
  add_cross_rate(e.density, e.mass, v, 3, 0, b + 18);
  add_cross_rate(e.density * e.magnus, kOnes, v, 0, 3, b + 18);

  // angular drag
  T moment = T(0.0);
  for (int i = 0; i < 3; i++) moment = moment + e.moment[i] * e.moment[i] * (w[i] * w[i]);
  moment = sqrt(moment);
  for (int i = 0; i < 3; i++) {
    b[7 * i] = b[7 * i] - (e.density * moment + e.viscosity * e.torque);
    if (value(moment) == 0) continue;
    for (int j = 0; j < 3; j++) {
      double square = e.moment[j] * e.moment[j];
      b[6 * i + j] = b[6 * i + j] - e.density * square * (w[i] * w[j] / moment);
    }
  }

  // linear drag and Kutta lift
  const Flow<T> f = make_flow(e, u);
  const T speed = sqrt(f.square);
  const T faster = e.density * (drag_per_density(e, f.area) * speed * f.per_square);
  const T wider = e.density * (e.blunt - e.slender) * (speed * f.area);
  for (int i = 0; i < 3; i++) {
    T* row = b + 18 + 6 * i + 3;
    T off = e.face[i] * f.square - f.num;  // the lift on axis i is -lift off u_i
    row[i] = row[i] - (f.drag + f.lift * off);
    for (int j = 0; j < 3; j++) {
      const double face = e.face[j];
      T grown = face * (face * f.per_den - f.per_num);  // d(log area)/du_j over u_j
      T bent = 2 * (face - e.face[i]) + off * (grown + f.per_square);
      row[j] = row[j] + u[i] * u[j] * (f.lift * bent - faster - wider * grown);
    }
  }
}

// Sets the place of an element, and its velocity relative to the medium.
void place(const ModelView& m, const DataView& d, int body, const double* position,
           const double* frame, FluidElement& e) {
  e.body = body;
  e.offset = load3(position) - load3(d.subtree_com + 3 * m.body_rootid[body]);
  e.frame = load9(frame);
  e.localize(load_motion(d.cvel + 6 * body), e.velocity);
  Vec3 wind = transpose_mul(e.frame, load3(m.opt.wind.v));
  store3(e.velocity + 3, load3(e.velocity + 3) - wind);
}

}  // namespace

Mat6 globalize(const FluidElement& e, const double a[36]) {
  Mat6 out;
  for (int c = 0; c < 6; c++) {
    double unit[6] = {}, local[6], moved[6] = {}, column[6];
    unit[c] = 1;
    e.localize({load3(unit), load3(unit + 3)}, local);
    for (int i = 0; i < 6; i++)
      for (int j = 0; j < 6; j++) moved[i] += a[6 * i + j] * local[j];
    Force f = e.globalize(moved);
    store3(column, f.ang), store3(column + 3, f.lin);
    for (int r = 0; r < 6; r++) out(r, c) = column[r];
  }
  return out;
}

bool has_ellipsoids(const ModelView& m, int body) {
  bool round = false;
  for (int id = m.body_geomadr[body], last = id + m.body_geomnum[body]; id < last; id++) {
    round |= m.geom_fluid[kNFluid * id] > 0;
  }
  return round;
}

FluidElement box_element(const ModelView& m, const DataView& d, int body) {
  FluidElement e;
  e.round = false;
  place(m, d, body, d.xipos + 3 * body, d.ximat + 9 * body, e);
  e.box = make_box(m, body);
  return e;
}

FluidElement ellipsoid_element(const ModelView& m, const DataView& d, int geom) {
  FluidElement e;
  e.round = true;
  place(m, d, m.geom_bodyid[geom], d.geom_xpos + 3 * geom, d.geom_xmat + 9 * geom, e);
  e.ellipsoid = make_ellipsoid(m, geom);
  return e;
}

void differentiate_force(const FluidElement& e, double force[6], double rate[36]) {
  std::fill(rate, rate + 36, 0.0);
  if (!e.round) {
    for (int i = 0; i < 6; i++) {
      double speed = std::abs(e.velocity[i]);
      force[i] = -(e.box.linear[i] + e.box.quadratic[i] * speed) * e.velocity[i];
      rate[7 * i] = -(e.box.linear[i] + 2 * e.box.quadratic[i] * speed);
    }
    return;
  }
  ellipsoid_force(e.ellipsoid, e.velocity, force);
  ellipsoid_rate(e.ellipsoid, e.velocity, rate);
  for (int i = 0; i < 36; i++) rate[i] *= e.ellipsoid.scale;
}

void differentiate_damping(const FluidElement& e, bool symmetric, const double* along, double b[36],
                           double change[36]) {
  std::fill(b, b + 36, 0.0);
  if (along) std::fill(change, change + 36, 0.0);
  if (!e.round) {
    for (int i = 0; i < 6; i++) {
      const double v = e.velocity[i];
      b[7 * i] = -(e.box.linear[i] + 2 * e.box.quadratic[i] * std::abs(v));
      if (along) change[7 * i] = -2 * e.box.quadratic[i] * sign_of(v) * along[i];
    }
    return;
  }
  // B alone
  if (!along) {
    ellipsoid_rate(e.ellipsoid, e.velocity, b);
    if (!symmetric) return;
    for (int i = 0; i < 6; i++)
      for (int j = 0; j < i; j++) b[6 * i + j] = b[6 * j + i] = 0.5 * (b[6 * i + j] + b[6 * j + i]);
    return;
  }
  // B and its derivative, by dual numbers
  using Number = Dual<6>;
  Number v[6], full[36];
  for (int i = 0; i < 6; i++) v[i] = variable<6>(e.velocity[i], i);
  ellipsoid_rate(e.ellipsoid, v, full);
  for (int i = 0; i < 6; i++) {
    for (int j = 0; j < 6; j++) {
      const Number &entry = full[6 * i + j], &mirror = full[symmetric ? 6 * j + i : 6 * i + j];
      b[6 * i + j] = 0.5 * (entry.v + mirror.v);
      for (int k = 0; k < 6; k++) {
        change[6 * i + k] += 0.5 * (entry.d[k] + mirror.d[k]) * along[j];
      }
    }
  }
}

void bend_force(const FluidElement& e, const double along[6], double second[36]) {
  std::fill(second, second + 36, 0.0);
  if (!e.round) {
    for (int i = 0; i < 6; i++) {
      second[7 * i] = -2 * e.box.quadratic[i] * sign_of(e.velocity[i]) * along[i];
    }
    return;
  }
  using Number = Dual<6>;
  Number v[6], full[36];
  for (int i = 0; i < 6; i++) v[i] = variable<6>(e.velocity[i], i);
  ellipsoid_rate(e.ellipsoid, v, full);
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++)
      for (int k = 0; k < 6; k++) {
        second[6 * j + k] += e.ellipsoid.scale * along[i] * full[6 * i + j].d[k];
      }
}

DampingBend bend_damping(const FluidElement& e, bool symmetric, const double left[6],
                         const double right[6]) {
  DampingBend bend{};
  if (!e.round) {
    for (int i = 0; i < 6; i++) {
      const double v = e.velocity[i], change = -2 * e.box.quadratic[i] * sign_of(v);
      bend.b[7 * i] = -(e.box.linear[i] + 2 * e.box.quadratic[i] * std::abs(v));
      bend.left[7 * i] = change * left[i];
      bend.right[7 * i] = change * right[i];
      bend.slope[i] = change * left[i] * right[i];
    }
    return bend;
  }
  using Number = Jet<6>;
  Number v[6], full[36], power(0.0);
  for (int i = 0; i < 6; i++) v[i] = jet_variable<6>(e.velocity[i], i);
  ellipsoid_rate(e.ellipsoid, v, full);
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++) {
      const Number& mirror = full[symmetric ? 6 * j + i : 6 * i + j];
      const Number entry = 0.5 * (full[6 * i + j] + mirror);
      bend.b[6 * i + j] = entry.v;
      for (int k = 0; k < 6; k++) {
        bend.left[6 * j + k] += left[i] * entry.d[k];
        bend.right[6 * i + k] += right[j] * entry.d[k];
      }
      power = power + left[i] * right[j] * entry;
    }
  for (int j = 0; j < 6; j++) {
    bend.slope[j] = power.d[j];
    for (int k = 0; k <= j; k++) {
      bend.second[6 * j + k] = bend.second[6 * k + j] = power.h[j * (j + 1) / 2 + k];
    }
  }
  return bend;
}

}  // namespace mujacobian

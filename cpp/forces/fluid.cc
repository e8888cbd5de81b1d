#include "forces/fluid.h"

#include <algorithm>

#include "forces/passive.h"
#include "layout/enums.h"
#include "spatial/dual.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

constexpr int kNext[3] = {1, 2, 0}, kAfter[3] = {2, 0, 1};

// The drag of a box in principal axes: component i of the wrench is
// -(linear_i + quadratic_i |v_i|) v_i.                                                    (FLU-4)
struct Box {
  double linear[6], quadratic[6];
};

// Returns the drag of the box that has the same inertia as the body.
Box make_box(const ModelView& m, int body) {
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
  Box box;
  for (int i = 0; i < 3; i++) {
    double a = size[kNext[i]], b = size[kAfter[i]];
    box.linear[i] = M_PI * diameter * diameter * diameter * viscosity;
    box.linear[3 + i] = 3 * M_PI * diameter * viscosity;
    box.quadratic[i] = density * size[i] * (a * a * a * a + b * b * b * b) / 64;
    box.quadratic[3 + i] = 0.5 * density * a * b;
  }
  return box;
}

// The coefficients of the fluid force on an ellipsoid, in its axes.
struct Ellipsoid {
  double density, viscosity;
  double scale;                    // of the force; MuJoCo's own derivatives omit it
  double blunt, slender, angular;  // drag coefficients
  double kutta, magnus;            // lift coefficients, the latter times the volume
  double mass[3], inertia[3];      // virtual (added) mass and inertia, over the density
  double face[3];                  // E_i, squared products of the other two semi-axes
  double widest;                   // the largest projected area
  double drag, torque;             // Stokes drag and torque, over the viscosity
  double moment[3];                // moments of the angular drag
};

double fourth(double x) { return x * x * x * x; }

Ellipsoid make_ellipsoid(const ModelView& m, int id) {
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
  Ellipsoid e;
  e.density = m.opt.density, e.viscosity = m.opt.viscosity;
  e.scale = p[0], e.blunt = p[1], e.slender = p[2], e.angular = p[3], e.kutta = p[4];
  e.magnus = p[5] * 4.0 / 3.0 * M_PI * s[0] * s[1] * s[2];

  // areas and moments of the shape
  e.widest = M_PI * longest * middle;
  const double diameter = 2.0 / 3.0 * (s[0] + s[1] + s[2]);
  e.drag = 3 * M_PI * diameter, e.torque = M_PI * diameter * diameter * diameter;
  const double most = 8.0 / 15.0 * M_PI * middle * fourth(longest);
  for (int i = 0; i < 3; i++) {
    double a = s[kNext[i]], b = s[kAfter[i]];
    e.mass[i] = p[6 + i], e.inertia[i] = p[9 + i];
    e.face[i] = a * a * b * b;
    double own = 8.0 / 15.0 * M_PI * s[i] * fourth(std::max(a, b));
    e.moment[i] = e.angular * own + e.slender * (most - own);
  }
  return e;
}

// Returns the quadratic drag for a projected area, over density and speed.
template <class T>
T drag_per_density(const Ellipsoid& e, const T& area) {
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
Flow<T> make_flow(const Ellipsoid& e, const T u[3]) {
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
  f.area = M_PI * sqrt(f.den * f.per_num);
  f.drag = f.drag + e.density * (sqrt(f.square) * drag_per_density(e, f.area));
  f.lift = M_PI * e.kutta * e.density * sqrt(f.num * f.per_den * f.per_square);
  return f;
}

Vec3 times(const double a[3], Vec3 b) { return {a[0] * b.x, a[1] * b.y, a[2] * b.z}; }

// Computes torque and force at local velocity v = (w, u).                                (FLU-5)
void ellipsoid_force(const Ellipsoid& e, const double v[6], double force[6]) {
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
void ellipsoid_rate(const Ellipsoid& e, const T v[6], T b[36]) {
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

// The box of a body, or the ellipsoid of a geom, in the medium.
struct Element {
  int body;
  bool round;   // it is an ellipsoid
  Vec3 offset;  // from the reference point
  Mat3 frame;
  double velocity[6];  // relative to the medium, in its own axes
  Box box;
  Ellipsoid ellipsoid;

  // X: the components of a motion in its own axes                                      (FLU-1)
  void localize(Motion v, double out[6]) const {
    store3(out, transpose_mul(frame, v.ang));
    store3(out + 3, transpose_mul(frame, at_point(v, offset)));
  }
  // X^T: the wrench about the reference point from its components in its own axes
  Force globalize(const double f[6]) const {
    Vec3 force = frame * load3(f + 3);
    return {frame * load3(f) + cross(offset, force), force};
  }
};

// X^T a X
Mat6 globalize(const Element& e, const double a[36]) {
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

bool is_ellipsoid(const ModelView& m, int id) { return m.geom_fluid[kNFluid * id] != 0; }

void place(const ModelView& m, const DataView& d, int body, const double* position,
           const double* frame, Element& e) {
  e.body = body;
  e.offset = load3(position) - load3(d.subtree_com + 3 * m.body_rootid[body]);
  e.frame = load9(frame);
  e.localize(load_motion(d.cvel + 6 * body), e.velocity);
  Vec3 wind = transpose_mul(e.frame, load3(m.opt.wind.v));
  store3(e.velocity + 3, load3(e.velocity + 3) - wind);
}

// Calls visit(element) for every element that can move: the ellipsoids of a body, or its box if it
// has none.
template <class F>
void visit_elements(const ModelView& m, const DataView& d, F visit) {
  for (int body = 1; body < m.nbody; body++) {
    if (m.body_mass[body] < kMinVal || last_dof(m, body) < 0) continue;
    const int first = m.body_geomadr[body], last = first + m.body_geomnum[body];
    bool round = false;
    for (int id = first; id < last; id++) round |= m.geom_fluid[kNFluid * id] > 0;
    Element e;
    e.round = round;
    if (!round) {
      place(m, d, body, d.xipos + 3 * body, d.ximat + 9 * body, e);
      e.box = make_box(m, body);
      visit(e);
      continue;
    }
    for (int id = first; id < last; id++) {
      if (!is_ellipsoid(m, id)) continue;
      place(m, d, body, d.geom_xpos + 3 * id, d.geom_xmat + 9 * id, e);
      e.ellipsoid = make_ellipsoid(m, id);
      visit(e);
    }
  }
}

// Computes the wrench and its derivative with respect to the velocity, in the axes of the element.
void differentiate_force(const Element& e, double force[6], double rate[36]) {
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

// Computes MuJoCo's B in the axes of the element and, if `along` is not null, the derivative
// d(B along)/d(velocity).                                                                (FLU-7)
void differentiate_damping(const Element& e, bool symmetric, const double* along, double b[36],
                           double change[36]) {
  std::fill(b, b + 36, 0.0);
  if (along) std::fill(change, change + 36, 0.0);
  if (!e.round) {
    for (int i = 0; i < 6; i++) {
      // tie: rest in the metric of a fluid
      double v = e.velocity[i], sign = (v > 0) - (v < 0);
      b[7 * i] = -(e.box.linear[i] + 2 * e.box.quadratic[i] * std::abs(v));
      if (along) change[7 * i] = -2 * e.box.quadratic[i] * sign * along[i];
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

// A wrench on a subtree that depends on the velocity of its bodies and on a second motion of
// theirs. It changes by S_k x* wrench + rate dvelocity_k + damping dmotion_k with q_k, and by rate
// S_k with v_k.
struct Composite {
  Force wrench;
  Mat6 rate, damping;
};

// Changes of the velocity and of the second motion with q_k, in addition to the rigid motion.
struct DofMotion {
  Motion dvelocity, dmotion;
};

void sum_over_subtrees(const ModelView& m, Composite* c) {
  for (int b = m.nbody - 1; b > 0; b--) {
    int parent = m.body_parentid[b];
    if (parent == 0) continue;
    c[parent].wrench += c[b].wrench;
    c[parent].rate += c[b].rate;
    c[parent].damping += c[b].damping;
  }
}

// Returns the change S'_k + (0, w_k x wind) of the velocity relative to the medium with q_k, in
// addition to the rigid motion.                                                          (FLU-2)
Motion velocity_change(const ModelView& m, const DataView& d, int k) {
  Motion turn = load_motion(d.cdof_dot + 6 * k);
  turn.lin += cross(load3(d.cdof + 6 * k), load3(m.opt.wind.v));
  return turn;
}

// Adds scale d(S^T wrench) to the rows with use[dof] set (null: all).                    (FLU-3)
void add_composites(const ModelView& m, const DataView& d, const Composite* c,
                    const DofMotion* motion, double scale, const unsigned char* use,
                    const DofRows& residual) {
  for (int k = 0; k < m.nv; k++) {
    const Composite& at_k = c[m.dof_bodyid[k]];
    const Motion axis = load_motion(d.cdof + 6 * k);

    // column k, rows of k and its ancestors: the axis of an ancestor does not move with the subtree
    const Force changed = at_k.rate * motion[k].dvelocity + at_k.damping * motion[k].dmotion;
    const Force moved = cross(axis, at_k.wrench), pushed = at_k.rate * axis;
    for (int j = k; j >= 0; j = m.dof_parentid[j]) {
      if (use && !use[j]) continue;
      const Motion other = load_motion(d.cdof + 6 * j);
      const Force change = moves_axis(m, k, j) ? changed : changed + moved;
      residual.dq(j, k) += scale * dot(other, change);
      residual.dv(j, k) += scale * dot(other, pushed);
    }

    // row k, columns of its ancestors, which move the whole subtree of k
    if (use && !use[k]) continue;
    const Force rate = transpose_mul(at_k.rate, axis), damping = transpose_mul(at_k.damping, axis);
    for (int j = m.dof_parentid[k]; j >= 0; j = m.dof_parentid[j]) {
      residual.dq(k, j) +=
          scale * (dot(motion[j].dvelocity, rate) + dot(motion[j].dmotion, damping));
      residual.dv(k, j) += scale * dot(load_motion(d.cdof + 6 * j), rate);
    }
  }
}

// Returns whether the integrator uses the symmetric part of B for this element.
bool is_symmetrized(const ModelView& m, const Element& e, FluidPart part) {
  if (part != FluidPart::kSymmetric) return part == FluidPart::kDrag;
  return free_body(m, m.dof_treeid[last_dof(m, e.body)]) < 0;
}

// Returns the element with only those forces that the integrator treats implicitly.
Element implicit_part(Element e, FluidPart part) {
  if (part != FluidPart::kDrag || !e.round) return e;
  Ellipsoid& x = e.ellipsoid;
  x.kutta = x.magnus = 0;
  for (int i = 0; i < 3; i++) x.mass[i] = x.inertia[i] = 0;
  return e;
}

// Returns 0 if the row of D of this dof has all entries of the pattern of M. In a tree whose M is
// diagonal (a body that slides or is free), a row has only the entry D_ii; the result is then 1
// plus the place of the dof in its tree. implicitfast has a full block for free bodies.
constexpr int kMaxGroups = 7;
int row_group(const ModelView& m, FluidPart part, int dof) {
  int tree = m.dof_treeid[dof], adr = m.tree_dofadr[tree], num = m.tree_dofnum[tree];
  bool own_block = part != FluidPart::kDrag && free_body(m, tree) >= 0;
  bool diagonal = num > 1 && m.M_rownnz[adr + num - 1] == 1 && !own_block;
  return diagonal ? 1 + dof - adr : 0;
}

// Returns whether one of the dofs in `use` (null: all) moves the body.
bool moves_any(const ModelView& m, int body, const unsigned char* use) {
  if (!use) return true;
  for (int k = last_dof(m, body); k >= 0; k = m.dof_parentid[k]) {
    if (use[k]) return true;
  }
  return false;
}

// Adds scale d(D w) to the rows in `use`. The caller sets w to zero in columns that these rows
// lack.
void add_damping_change(const ModelView& m, const DataView& d, FluidPart part, const double* w,
                        double scale, const unsigned char* use, const DofRows& residual,
                        Arena& arena) {
  // the motion of the bodies at joint velocity w, and its changes with every dof
  const DataView moving = at_velocity(m, d, w, arena);
  DofMotion* motion = arena.take<DofMotion>(m.nv);
  for (int k = 0; k < m.nv; k++) {
    motion[k] = {velocity_change(m, d, k), load_motion(moving.cdof_dot + 6 * k)};
  }

  // wrenches B w of the elements, and their derivatives
  Composite* c = arena.zeros<Composite>(m.nbody);
  visit_elements(m, d, [&](const Element& e) {
    if (!moves_any(m, e.body, use)) return;
    double along[6], b[36], change[36], force[6] = {};
    e.localize(load_motion(moving.cvel + 6 * e.body), along);
    differentiate_damping(implicit_part(e, part), is_symmetrized(m, e, part), along, b, change);
    for (int i = 0; i < 6; i++)
      for (int j = 0; j < 6; j++) force[i] += b[6 * i + j] * along[j];
    c[e.body].wrench += e.globalize(force);
    c[e.body].rate += globalize(e, change);
    c[e.body].damping += globalize(e, b);
  });
  sum_over_subtrees(m, c);
  add_composites(m, d, c, motion, scale, use, residual);
}

}  // namespace

bool fluid_enabled(const ModelView& m) {
  return passive_enabled(m) && (m.opt.density != 0 || m.opt.viscosity != 0);
}

void add_fluid(const ModelView& m, const DataView& d, const DofRows& residual, Arena& arena) {
  if (!fluid_enabled(m)) return;
  Composite* c = arena.zeros<Composite>(m.nbody);
  DofMotion* motion = arena.zeros<DofMotion>(m.nv);
  for (int k = 0; k < m.nv; k++) motion[k].dvelocity = velocity_change(m, d, k);
  visit_elements(m, d, [&](const Element& e) {
    double force[6], rate[36];
    differentiate_force(e, force, rate);
    c[e.body].wrench += e.globalize(force);
    c[e.body].rate += globalize(e, rate);
  });
  sum_over_subtrees(m, c);
  add_composites(m, d, c, motion, 1, nullptr, residual);
}

double FluidDamping::entry(const ModelView& m, const DataView& d, int i, int j) const {
  const Mat6& b = composite[m.dof_bodyid[i > j ? i : j]];
  return dot(load_motion(d.cdof + 6 * i), b * load_motion(d.cdof + 6 * j));
}

FluidDamping fluid_damping(const ModelView& m, const DataView& d, FluidPart part, Arena& arena) {
  if (!fluid_enabled(m)) return {nullptr};
  Mat6* composite = arena.zeros<Mat6>(m.nbody);
  visit_elements(m, d, [&](const Element& e) {
    double b[36];
    differentiate_damping(implicit_part(e, part), is_symmetrized(m, e, part), nullptr, b, nullptr);
    composite[e.body] += globalize(e, b);
  });
  for (int b = m.nbody - 1; b > 0; b--) {
    if (m.body_parentid[b]) composite[m.body_parentid[b]] += composite[b];
  }
  return {composite};
}

void add_fluid_damping_change(const ModelView& m, const DataView& d, FluidPart part,
                              bool full_pattern, const double* w, double scale,
                              const DofRows& residual, Arena& arena) {
  if (!fluid_enabled(m)) return;
  if (full_pattern) return add_damping_change(m, d, part, w, scale, nullptr, residual, arena);

  // one pass per group of rows, with w restricted to the columns of the group
  double* own = arena.take<double>(m.nv);
  unsigned char* use = arena.take<unsigned char>(m.nv);
  for (int group = 0; group < kMaxGroups; group++) {
    bool any = false;
    for (int i = 0; i < m.nv; i++) {
      use[i] = row_group(m, part, i) == group;
      own[i] = use[i] ? w[i] : 0;
      any |= use[i];
    }
    if (any) add_damping_change(m, d, part, own, scale, use, residual, arena);
  }
}

void add_fluid_diagonal_change(const ModelView& m, const DataView& d, FluidPart part, double scale,
                               const DofRows& residual, Arena& arena) {
  if (!fluid_enabled(m)) return;
  // d(D_jj) is row j of d(D e_j)
  double* unit = arena.zeros<double>(m.nv);
  unsigned char* use = arena.zeros<unsigned char>(m.nv);
  for (int j = 0; j < m.nv; j++) {
    unit[j] = use[j] = 1;
    add_damping_change(m, d, part, unit, scale, use, residual, arena);
    unit[j] = use[j] = 0;
  }
}

}  // namespace mujacobian

// Ellipsoids and cylinders against everything, and capsules against them: the optimality conditions
// of the true surfaces, solved from MuJoCo's witness points.
#include <algorithm>
#include <cmath>
#include <utility>

#include "contact/polytope.h"
#include "contact/prism.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kFlat = 1e-7;    // tilt at which a cylinder's side or cap faces a contact squarely
constexpr double kInside = 1e-6;  // of a side or cap, not on the rim: there MuJoCo's witness tells

// x = S^2 n / |S n| in the ellipsoid's frame
SupportSide ellipsoid_side(const Geom& geom, Vec3 n) {
  const double* s = geom.size;
  Vec3 local = transpose_mul(geom.frame, n);
  Vec3 sn = {s[0] * local.x, s[1] * local.y, s[2] * local.z};
  double length = norm(sn);
  Vec3 x = {s[0] * sn.x / length, s[1] * sn.y / length, s[2] * sn.z / length};
  Mat3 follow = outer((-1 / length) * (geom.frame * x), geom.frame * x);
  for (int k = 0; k < 3; k++) {
    Vec3 axis = column(geom.frame, k);
    follow = follow + outer((s[k] * s[k] / length) * axis, axis);
  }
  return {geom.to_world(x), 0, follow, {}, 0};
}

// side: the axis with a radius; cap: a face; otherwise the rim, which follows the normal around
SupportSide cylinder_side(const ModelView& m, const Geom& geom, Vec3 n, Vec3 witness) {
  Vec3 axis = geom.axis();
  double radius = geom.size[0], half = geom.size[1], along = dot(n, axis);
  Vec3 radial = n - along * axis;
  double flat = norm(radial), x = dot(witness - geom.position, axis);
  if (std::abs(along) < (std::abs(x) < half * (1 - kInside) ? curved_agreement(m) : kFlat)) {
    return {geom.position + std::clamp(x, -half, half) * axis, radius, {}, {axis, {}}, 1};
  }
  Vec3 aside = witness - geom.position - x * axis;
  if (flat < (norm(aside) < radius * (1 - kInside) ? normal_error(m) : kFlat)) {
    Vec3 u = column(geom.frame, 0), v = column(geom.frame, 1);
    Vec3 top = geom.position + (along > 0 ? half : -half) * axis;
    return {top + aside, 0, {}, {u, v}, 2};
  }
  Vec3 e = (1 / flat) * radial, t = cross(axis, e);
  Vec3 point = geom.position + (along > 0 ? half : -half) * axis + radius * e;
  return {point, 0, outer((radius / flat) * t, t), {}, 0};
}

SupportSide capsule_side(const Geom& geom, Vec3 n, Vec3 witness) {
  double half = geom.size[1];
  double x = dot(witness - geom.size[0] * n - geom.position, geom.axis());
  bool inside = std::abs(x) < half * (1 - 1e-9) && std::abs(dot(n, geom.axis())) < 1e-2;
  if (!inside) x = dot(n, geom.axis()) > 0 ? half : -half;
  return {geom.position + x * geom.axis(), geom.size[0], {}, {geom.axis(), {}}, inside};
}

// vertex, edge or face of a box or mesh
SupportSide polytope_side(const Polytope& p, Vec3 n, Vec3 witness) {
  Vec3 along;
  if (p.is_vertex(witness, n)) return {witness, 0, {}, {}, 0};
  if (p.edge_through(witness, n, along)) return {witness, 0, {}, {along, {}}, 1};
  Vec3 u = std::abs(n.x) < 0.5 ? Vec3{1, 0, 0} : Vec3{0, 1, 0};
  u = u - dot(u, n) * n;
  u = (1 / norm(u)) * u;
  return {witness, 0, {}, {u, cross(n, u)}, 2};
}

SupportSide make_side(const ModelView& m, const DataView& d, int id, Vec3 n, Vec3 witness,
                      int* walked) {
  const Geom geom = load_geom(m, d, id);
  switch (geom.type) {
    case geom::kSphere:
      return {geom.position, geom.size[0], {}, {}, 0};
    case geom::kCapsule:
      return capsule_side(geom, n, witness);
    case geom::kEllipsoid:
      return ellipsoid_side(geom, n);
    case geom::kCylinder:
      return cylinder_side(m, geom, n, witness);
    default:
      return polytope_side(Polytope(m, d, id, walked), n, witness);
  }
}

// a x = b by elimination with pivoting, n <= 8; false if singular
bool solve(double a[8][9], int n) {
  for (int p = 0; p < n; p++) {
    int best = p;
    for (int r = p + 1; r < n; r++)
      if (std::abs(a[r][p]) > std::abs(a[best][p])) best = r;
    if (std::abs(a[best][p]) < 1e-14) return false;
    for (int c = 0; c <= n; c++) std::swap(a[p][c], a[best][c]);
    for (int r = 0; r < n; r++) {
      if (r == p) continue;
      double factor = a[r][p] / a[p][p];
      for (int c = p; c <= n; c++) a[r][c] -= factor * a[p][c];
    }
  }
  for (int r = 0; r < n; r++) a[r][n] /= a[r][r];
  return true;
}

}  // namespace

// Unknowns: dn (3), ddist, slides t. With n_0 = n, n_1 = -n and D = dist + radii:
//   dx_1 - dx_0 - D dn - n ddist = -gap,   dx_s = moved_s + W_s (+-dn - turn_s x n_s) + a t
//   n . dn = 0,   a . dn = -n . (turn x a) for every slide a
SupportChange support_change(const SupportContact& c, Vec3 n, double distance, const Vec3 moved[2],
                             const Vec3 turn[2], Vec3 gap) {
  const double reach = distance + c.side[0].radius + c.side[1].radius;
  double a[8][9] = {};
  const int size = 4 + c.side[0].slides + c.side[1].slides;
  const Vec3 outward[2] = {n, -n};
  Vec3 rest[2];
  for (int s = 0; s < 2; s++) {
    rest[s] = moved[s] - c.side[s].follow * cross(turn[s], outward[s]);
  }
  double right[3], nv[3] = {n.x, n.y, n.z};
  store3(right, rest[0] - rest[1] - gap);
  for (int r = 0; r < 3; r++) {
    for (int k = 0; k < 3; k++) {
      a[r][k] = -c.side[1].follow(r, k) - c.side[0].follow(r, k) - (r == k ? reach : 0);
    }
    a[r][3] = -nv[r];
    a[r][size] = right[r];
    a[3][r] = nv[r];
  }
  for (int s = 0, at = 4; s < 2; s++) {
    for (int k = 0; k < c.side[s].slides; k++, at++) {
      double slide[3];
      store3(slide, c.side[s].slide[k]);
      for (int r = 0; r < 3; r++) {
        a[r][at] = s ? slide[r] : -slide[r];
        a[at][r] = slide[r];
      }
      a[at][size] = -dot(n, cross(turn[s], c.side[s].slide[k]));
    }
  }
  SupportChange change{};
  if (!solve(a, size)) {
    change.distance = NAN;
    return change;
  }
  change.normal = {a[0][size], a[1][size], a[2][size]};
  change.distance = a[3][size];
  for (int s = 0, at = 4; s < 2; s++) {
    change.point[s] = rest[s] + (s ? -1.0 : 1.0) * (c.side[s].follow * change.normal);
    for (int k = 0; k < c.side[s].slides; k++, at++) {
      change.point[s] += a[at][size] * c.side[s].slide[k];
    }
  }
  return change;
}

bool identify_curved(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& g) {
  return identify_along(m, d, contact, g) || identify_optimum(m, d, contact, g, nullptr);
}

bool identify_optimum(const ModelView& m, const DataView& d, const ContactView& contact,
                      ContactGeometry& g, const Prism* prism) {
  g.kind = ContactGeometry::kSupports;
  Vec3 witness[2] = {g.position - (g.distance / 2) * g.normal,
                     g.position + (g.distance / 2) * g.normal};
  Vec3 n = g.normal;
  double distance = g.distance;
  const Vec3 still[2] = {};
  // Newton's method on the optimality conditions, features chosen anew at every step
  for (int step = 0; step < 20; step++) {
    for (int s = 0; s < 2; s++) {
      g.supports.side[s] = prism && s == 0 ? prism->side(n, witness[0])
                                           : make_side(m, d, contact.geom.v[s], s ? -n : n,
                                                       witness[s], &g.walked[s]);
    }
    if (prism) g.supports.side[1].radius += prism->inflation;
    const SupportSide* side = g.supports.side;
    double reach = distance + side[0].radius + side[1].radius;
    Vec3 gap = side[1].point - side[0].point - reach * n;
    for (int s = 0; s < 2; s++)
      for (int k = 0; k < side[s].slides; k++) {
        // bring the normal to the feature first
        n = n - dot(n, side[s].slide[k]) * side[s].slide[k];
      }
    n = (1 / norm(n)) * n;
    gap = side[1].point - side[0].point - reach * n;
    SupportChange c = support_change(g.supports, n, distance, still, still, gap);
    if (!std::isfinite(c.distance)) return false;
    n = n + c.normal;
    n = (1 / norm(n)) * n;
    distance += c.distance;
    for (int s = 0; s < 2; s++) {
      witness[s] = side[s].point + c.point[s] + (s ? -side[s].radius : side[s].radius) * n;
      g.supports.side[s].point = side[s].point + c.point[s];
    }
    if (norm(gap) + norm(c.normal) < 1e-13) break;
  }
  return true;
}

}  // namespace mujacobian

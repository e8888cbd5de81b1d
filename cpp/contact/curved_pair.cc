// Pairs of an ellipsoid or cylinder: the optimality conditions of the true surfaces, solved with
// Newton's method from MuJoCo's witness points.                                            (CON-14)
#include "contact/curved_pair.h"

#include <algorithm>
#include <cmath>

#include "contact/agreement.h"
#include "contact/pair_table.h"
#include "contact/polytope.h"
#include "contact/segment_on_face.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kFlat = 1e-7;    // tilt below which the side or cap of a cylinder faces a contact
constexpr double kInside = 1e-6;  // distance from the rim, relative to the size of a side or cap
constexpr double kParallel = 1e-12;  // rad, angle up to which lines are parallel

// Support of an ellipsoid: x = S^2 n / |S n| in its frame.
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
  return {.point = geom.to_world(x), .follow = follow};
}

// Support of a cylinder: on its side, the axis with a radius; on its cap, a face; otherwise the
// rim, whose point follows the normal. MuJoCo's witness point distinguishes them.
SupportSide cylinder_side(const ModelView& m, const Geom& geom, Vec3 n, Vec3 witness) {
  Vec3 axis = geom.axis();
  double radius = geom.size[0], half = geom.size[1], along = dot(n, axis);
  Vec3 radial = n - along * axis;
  double flat = norm(radial), x = dot(witness - geom.position, axis);
  if (std::abs(along) < (std::abs(x) < half * (1 - kInside) ? curved_agreement(m) : kFlat)) {
    return {.point = geom.position + std::clamp(x, -half, half) * axis,
            .radius = radius,
            .slide = {axis, {}},
            .slides = 1};
  }
  Vec3 aside = witness - geom.position - x * axis;
  if (flat < (norm(aside) < radius * (1 - kInside) ? normal_error(m) : kFlat)) {
    Vec3 u = column(geom.frame, 0), v = column(geom.frame, 1);
    Vec3 top = geom.position + (along > 0 ? half : -half) * axis;
    return {.point = top + aside, .slide = {u, v}, .slides = 2};
  }
  Vec3 e = (1 / flat) * radial, t = cross(axis, e);
  Vec3 point = geom.position + (along > 0 ? half : -half) * axis + radius * e;
  return {.point = point, .follow = outer((radius / flat) * t, t)};
}

// Support of a capsule: a point of its segment with a radius.
SupportSide capsule_side(const Geom& geom, Vec3 n, Vec3 witness) {
  double half = geom.size[1];
  double x = dot(witness - geom.size[0] * n - geom.position, geom.axis());
  const double lean = dot(n, geom.axis());
  bool inside = std::abs(x) < half * (1 - 1e-9) && std::abs(lean) < 1e-2;
  // the witness point shows at which end of a capsule that lies flat it is
  if (!inside) x = std::copysign(half, std::abs(lean) < kFlat ? x : lean);
  return {.point = geom.position + x * geom.axis(),
          .radius = geom.size[0],
          .slide = {geom.axis(), {}},
          .slides = inside};
}

// Support of a box or mesh: a vertex, an edge or a face. The witness point has an error of `fuzz`.
SupportSide polytope_side(const Polytope& p, Vec3 n, Vec3 witness, double fuzz) {
  Vec3 along;
  if (p.is_vertex(witness, n, fuzz)) return {.point = witness};
  if (p.edge_through(witness, n, along, fuzz))
    return {.point = witness, .slide = {along, {}}, .slides = 1};
  Vec3 u = std::abs(n.x) < 0.5 ? Vec3{1, 0, 0} : Vec3{0, 1, 0};
  u = u - dot(u, n) * n;
  u = (1 / norm(u)) * u;
  return {.point = witness, .slide = {u, cross(n, u)}, .slides = 2};
}

// Support of a geom along its outward normal n.
SupportSide make_side(const ModelView& m, const DataView& d, int id, Vec3 n, Vec3 witness,
                      double fuzz, int* walked) {
  const Geom geom = load_geom(m, d, id);
  switch (geom.type) {
    case geom::kSphere:
      return {.point = geom.position, .radius = geom.size[0]};
    case geom::kCapsule:
      return capsule_side(geom, n, witness);
    case geom::kEllipsoid:
      return ellipsoid_side(geom, n);
    case geom::kCylinder:
      return cylinder_side(m, geom, n, witness);
    default:
      return polytope_side(Polytope(m, d, id, walked), n, witness, fuzz);
  }
}

// Whether a line is parallel to the face of a polytope or cylinder near the outward normal n, which
// has an error of up to kNear rad.
bool is_along_face(const ModelView& m, const DataView& d, int id, Vec3 n, Vec3 line) {
  constexpr double kNear = 1e-6;
  const Polytope p(m, d, id);
  return p.find_face(n, 1 - kNear * kNear, [&](int face) {
    return std::abs(dot(p.face_normal(face), line)) <= kParallel;
  });
}

// Two parallel lines, or a line parallel to a face, along which both points can slide at once:
// fixes the point of the first line to its geom. Returns the direction of this line, zero if there
// is none. (CON-31)
Vec3 fix_on_line(const ModelView& m, const DataView& d, const ContactView& contact, Vec3 n,
                 bool on_field, SupportSide side[2]) {
  for (int s = 0; s < 2; s++) {
    const SupportSide& other = side[1 - s];
    if (side[s].slides != 1) continue;
    const Vec3 line = side[s].slide[0];
    const bool parallel = other.slides == 1
                              ? norm(cross(line, other.slide[0])) <= kParallel
                              : other.slides == 2 && !on_field &&
                                    is_along_face(m, d, contact.geom.v[1 - s], s ? n : -n, line);
    if (!parallel) continue;
    side[s].slides = 0;
    return line;
  }
  return {0, 0, 0};
}

}  // namespace

bool identify_curved(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& g) {
  return identify_segment_on_face(m, d, contact, g) || find_supports(m, d, contact, nullptr, g);
}

bool identify_supports(const ModelView& m, const DataView& d, const ContactView& contact,
                       ContactGeometry& g) {
  return find_supports(m, d, contact, nullptr, g);
}

bool find_supports(const ModelView& m, const DataView& d, const ContactView& contact,
                   const Prism* prism, ContactGeometry& g) {
  SupportFeature f;
  SupportSide* side = f.side;
  Vec3 witness[2] = {g.position - (g.distance / 2) * g.normal,
                     g.position + (g.distance / 2) * g.normal};
  Vec3 n = g.normal;
  double distance = g.distance;
  const Vec3 still[2] = {};
  const double fuzz = rounded_point_error(m, detection(m, contact));
  // Newton's method on the optimality conditions, parts of the surfaces chosen anew at every step
  for (int step = 0; step < 20; step++) {
    for (int s = 0; s < 2; s++) {
      side[s] = prism && s == 0 ? prism->side(n, witness[0])
                                : make_side(m, d, contact.geom.v[s], s ? -n : n, witness[s], fuzz,
                                            &g.walked[s]);
    }
    if (prism) side[1].radius += prism->inflation;
    g.line = fix_on_line(m, d, contact, n, prism != nullptr, side);

    // bring the normal to the straight directions first
    double reach = distance + side[0].radius + side[1].radius;
    for (int s = 0; s < 2; s++)
      for (int k = 0; k < side[s].slides; k++) {
        n = n - dot(n, side[s].slide[k]) * side[s].slide[k];
      }
    n = (1 / norm(n)) * n;

    // one step
    Vec3 gap = side[1].point - side[0].point - reach * n;
    SupportChange c = support_change(f, n, distance, still, still, gap);
    if (!std::isfinite(c.distance)) return false;
    n = n + c.normal;
    n = (1 / norm(n)) * n;
    distance += c.distance;
    for (int s = 0; s < 2; s++) {
      witness[s] = side[s].point + c.point[s] + (s ? -side[s].radius : side[s].radius) * n;
      side[s].point = side[s].point + c.point[s];
    }
    if (norm(gap) + norm(c.normal) < 1e-13) break;
  }
  g.feature = f;
  return true;
}

}  // namespace mujacobian

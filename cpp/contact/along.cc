// Capsules and cylinders along faces: the ends of the part of their surface's line that is over the
// face, and the caps of cylinders as polygons on faces.
#include <algorithm>
#include <cmath>

#include "contact/polytope.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;

// How well the direction from a segment to a mesh is known, whose faces are not quite flat, and to
// anything from a cylinder.
constexpr double kSeen = 1e-6, kSeenByCylinder = 1e-5, kSeenAtRim = 1e-4;

// How many times worse the next direction must explain a point than the only one that does.
constexpr double kClearly = 4;

// Depths that differ by less are equal up to rounding.
constexpr double kTied = 1e-14;

// Change of a direction at which an iteration has converged.
constexpr double kConverged = 1e-15;

// Nearest points of the segments from a to b and from c to d, by their place between 0 and 1.
void nearest_points(Vec3 a, Vec3 b, Vec3 c, Vec3 d, double& s, double& t) {
  Vec3 u = b - a, v = d - c, w = c - a;
  double uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), det = uu * vv - uv * uv;
  s = det > 0 ? std::clamp((dot(u, w) * vv - dot(v, w) * uv) / det, 0.0, 1.0) : 0;
  t = (s * uv - dot(v, w)) / vv;
  if (t >= 0 && t <= 1) return;
  t = t < 0 ? 0 : 1;
  s = std::clamp((dot(u, w) + t * uv) / uu, 0.0, 1.0);
}

// p is over or under a face, not beside it.
bool over(const Polytope& mesh, int face, Vec3 p) {
  Vec3 n = mesh.face_normal(face);
  int left = 0, size = mesh.face_size(face);
  for (int k = 0; k < size; k++) {
    Vec3 a = mesh.face_vertex(face, k), b = mesh.face_vertex(face, (k + 1) % size);
    left += dot(cross(n, b - a), p - a) > 0;
  }
  return left == 0 || left == size;
}

// From where the collider sees an edge, as a direction and how that moves: between the segment and
// the edge. `beyond`: the segment is already on the other side of it, within the other geom.
void look_at_edge(const Geom& geom, Vec3 from, Vec3 to, bool beyond, SegmentPoint& s) {
  s.look = SegmentPoint::kNearest;
  Vec3 a = geom.axis();
  Vec3 end[2] = {geom.position - geom.size[1] * a, geom.position + geom.size[1] * a};
  double t[2];
  nearest_points(end[0], end[1], from, to, t[0], t[1]);
  s.nearest = {};
  s.nearest.center[0] = end[0] + t[0] * (end[1] - end[0]);
  s.nearest.center[1] = from + t[1] * (to - from);
  s.nearest.axis[0] = a;
  s.nearest.axis[1] = (1 / norm(to - from)) * (to - from);
  for (int k = 0; k < 2; k++) {
    if (t[k] > 0 && t[k] < 1) s.nearest.slide[k] = CenterContact::kLine;
  }
  Vec3 span = s.nearest.center[1] - s.nearest.center[0];
  s.direction = ((beyond ? -1 : 1) / norm(span)) * span;
}

// The same for a side of a face, numbered from 0, or else along the face's normal.
void look(const Geom& geom, const Polytope& p, int face, int side, bool beyond, SegmentPoint& s) {
  s.look = SegmentPoint::kFace;
  s.direction = -p.face_normal(face);
  if (side < 0) return;
  const Vec3 from = p.face_vertex(face, side),
             to = p.face_vertex(face, (side + 1) % p.face_size(face));
  look_at_edge(geom, from, to, beyond, s);
}

Vec3 off_segment(const SegmentPoint& s) {
  Vec3 off = s.direction - dot(s.direction, s.axis) * s.axis;
  return (s.unit ? s.radius / norm(off) : s.radius) * off;
}

// The normal between the rim of a cylinder and a side of the face, given its part across the axis:
// it is perpendicular to the side, and the rim is nearest where it passes through the normal.
bool look_from_rim(const Geom& cylinder, const Polytope& p, int face, Vec3 off, SegmentPoint& s) {
  Vec3 a = cylinder.axis(), u = (1 / norm(off)) * off;
  for (int side = 0, size = p.face_size(face); side < size; side++) {
    Vec3 from = p.face_vertex(face, side), to = p.face_vertex(face, (side + 1) % size);
    Vec3 e = (1 / norm(to - from)) * (to - from);
    double slope = dot(e, a);
    if (std::abs(slope) < kOn) continue;
    Vec3 n = u - (dot(u, e) / slope) * a;
    n = (1 / norm(n)) * n;
    double up = dot(n, a), flat = norm(n - up * a);
    Vec3 rim = cylinder.position + (up > 0 ? 1 : -1) * cylinder.size[1] * a + cylinder.size[0] * u;
    Vec3 gap = from - rim;
    if (std::abs(dot(gap, cross(n, e))) > kSeenByCylinder * cylinder.size[0]) continue;
    // the point of the side on the normal
    Vec3 on_side = from - dot(gap, e) * e;
    if (dot(on_side - from, e) < 0 || dot(to - on_side, e) < 0) continue;
    Vec3 t = cross(a, u);
    s.look = SegmentPoint::kRim;
    s.direction = n;
    s.rim.side[0] = {rim, 0, outer((cylinder.size[0] / flat) * t, t), {}, 0};
    s.rim.side[1] = {on_side, 0, {}, {e, {}}, 1};
    return true;
  }
  return false;
}

// The point of the rim of the cap that is the face, farthest against n.
bool rim_against(const Geom& cylinder, Vec3 cap, Vec3 n, SupportSide& side) {
  Vec3 radial = dot(n, cap) * cap - n;
  double flat = norm(radial);
  if (flat < kOn) return false;
  radial = (1 / flat) * radial;
  Vec3 t = cross(cap, radial), middle = cylinder.position + cylinder.size[1] * cap;
  side = {middle + cylinder.size[0] * radial, 0, outer((cylinder.size[0] / flat) * t, t), {}, 0};
  return true;
}

// The normal between the side of a cylinder and that rim, where the side leaves the cap, at the
// lesser (exit 0) or greater place (1) along the axis. The normal is perpendicular to the axis and
// leans to the rim's center. If it is known, so is the place, and the other way round.    (CON-30)
bool look_at_exit(const Geom& cylinder, const Polytope& p, int face, int exit, SegmentPoint& s) {
  constexpr int kSteps = 50;
  const Geom& other = p.geom();
  const Vec3 a = cylinder.axis(), cap = p.face_normal(face);
  const Vec3 from = cylinder.position - (other.position + other.size[1] * cap);
  const double rise = dot(a, cap), height = dot(from, cap);
  Vec3 d = -cap;
  double along = 0, change = INFINITY;
  for (int step = 0; step < kSteps && change > kConverged; step++) {
    // the point of the cap's plane from which the normal leads to the axis, at a place x of that:
    // start + x slope
    const double down = dot(d, cap);
    const Vec3 start = from - (height / down) * d, slope = a - (rise / down) * d;
    const double uu = dot(slope, slope), uv = dot(slope, start);
    const double root = uv * uv - uu * (dot(start, start) - other.size[0] * other.size[0]);
    if (!(root > 0)) return false;
    along = (-uv + (exit ? 1 : -1) * std::sqrt(root)) / uu;
    const Vec3 radial = (1 / other.size[0]) * (start + along * slope);
    const double lean = rise / dot(radial, a);
    if (!(lean < 0)) return false;
    const Vec3 next = (1 / std::sqrt(1 + lean * lean)) * (lean * radial - cap);
    change = norm(next - d), d = next;
  }
  if (change > kConverged || std::abs(along) > cylinder.size[1]) return false;
  s.look = SegmentPoint::kRim;
  s.direction = d;
  s.rim.side[0] = {cylinder.position + along * a, cylinder.size[0], {}, {a, {}}, 1};
  return rim_against(other, cap, d, s.rim.side[1]);
}

// The normal between the side of a cylinder or capsule, or the end of a capsule, and that rim.
bool look_at_rim(const Geom& geom, const Polytope& p, int face, Vec3 off, SegmentPoint& s) {
  const Geom& other = p.geom();
  if (other.type != geom::kCylinder) return false;
  const Vec3 a = geom.axis(), cap = p.face_normal(face);
  const double half = geom.size[1], length = norm(off) / s.radius;
  s.look = SegmentPoint::kRim;
  SupportSide* side = s.rim.side;
  // 0: the side; -1 and 1: the ends, from which the normal leans outwards
  for (int end = -1; end <= 1; end++) {
    double lean = std::sqrt(std::fmax(0, 1 - length * length));
    s.direction = end == 0 ? (1 / norm(off)) * off : (1 / s.radius) * off + end * lean * a;
    if (!rim_against(other, cap, s.direction, side[1])) continue;
    double along = end == 0 ? dot(side[1].point - geom.position, a) : end * half;
    side[0] = {geom.position + along * a, geom.size[0], {}, {a, {}}, end == 0};
    Vec3 gap = cross(side[1].point - side[0].point, s.direction);
    if (std::abs(along) <= half && norm(gap) < kSeenAtRim * s.radius) return true;
  }
  return false;
}

// The normal between the rim of a cylinder, at the end to which it leans, and that rim, given its
// part across the axis: found among all angles by which it may lean.
bool look_from_rim_at_rim(const Geom& cylinder, const Polytope& p, int face, Vec3 off,
                          SegmentPoint& s) {
  if (p.geom().type != geom::kCylinder) return false;
  constexpr int kAngles = 64, kHalvings = 50;
  const Vec3 a = cylinder.axis(), u = (1 / norm(off)) * off, t = cross(a, u);
  s.look = SegmentPoint::kRim;
  SupportSide* side = s.rim.side;
  for (int end = -1; end <= 1; end += 2) {
    const Vec3 rim = cylinder.position + end * cylinder.size[1] * a + cylinder.size[0] * u;
    // how far the points are from lying on the normal, in the plane in which it leans
    auto gap = [&](double angle) {
      s.direction = std::cos(angle) * u + std::sin(angle) * end * a;
      if (!rim_against(p.geom(), p.face_normal(face), s.direction, side[1])) return 0.0;
      const Vec3 across = std::cos(angle) * end * a - std::sin(angle) * u;
      return dot(side[1].point - rim, across);
    };
    for (int k = 0; k < kAngles; k++) {
      double low = M_PI / 2 * k / kAngles, high = M_PI / 2 * (k + 1) / kAngles;
      const bool rising = gap(high) > gap(low);
      if (gap(low) * gap(high) > 0) continue;
      for (int h = 0; h < kHalvings; h++) {
        const double middle = (low + high) / 2;
        ((gap(middle) > 0) == rising ? high : low) = middle;
      }
      if (std::abs(dot(side[1].point - rim, t)) > kSeenAtRim * s.radius) continue;
      side[0] = {rim, 0, outer((cylinder.size[0] / std::cos(low)) * t, t), {}, 0};
      return true;
    }
  }
  return false;
}

// Polygons of hulls that are not flat are folded: the collider sees the triangle of three of their
// vertices, or the line through two.
bool looks_at_fold(const Geom& capsule, const Polytope& p, int face, Vec3 off, SegmentPoint& s) {
  const int size = p.face_size(face);
  auto explains = [&] { return norm(off_segment(s) - off) < kOn * s.radius; };
  for (int i = 0; i < size; i++) {
    for (int j = i + 1; j < size; j++) {
      const Vec3 a = p.face_vertex(face, i), b = p.face_vertex(face, j);
      look_at_edge(capsule, a, b, false, s);
      if (explains()) return true;
      s.look = SegmentPoint::kFace;
      for (int k = j + 1; k < size; k++) {
        const Vec3 n = cross(b - a, p.face_vertex(face, k) - a);
        s.direction = ((dot(n, p.face_normal(face)) > 0 ? -1 : 1) / norm(n)) * n;
        if (explains()) return true;
      }
    }
  }
  return false;
}

// How far a cylinder reaches from its center along a direction.
double cylinder_reach(const Geom& cylinder, Vec3 direction) {
  const Vec3 a = cylinder.axis();
  const double along = dot(direction, a);
  return cylinder.size[1] * std::abs(along) + cylinder.size[0] * norm(direction - along * a);
}

// How deep the geom and the polytope are in one another along the direction in which `s` looks.
double depth_along(const Geom& geom, const Polytope& p, const SegmentPoint& s) {
  const Vec3 n = s.direction;
  double depth =
      s.unit ? cylinder_reach(geom, n) : geom.size[1] * std::abs(dot(n, s.axis)) + s.radius;
  if (p.geom().type == geom::kCylinder) {
    return depth + cylinder_reach(p.geom(), n) - dot(n, p.geom().position - geom.position);
  }
  constexpr int kRoom = 16;
  int id[kRoom];
  double nearest = INFINITY;
  for (int k = 0, count = p.support(-n, id, kRoom); k < count; k++) {
    nearest = std::fmin(nearest, dot(n, p.vertex(id[k]) - geom.position));
  }
  return depth - nearest;
}

// The directions along the face's normal and towards its sides that explain a point: the angle by
// which the one that is taken is off, and the least such angle of the others.
struct Explanation {
  double error = INFINITY, next = INFINITY;
};

// Look in the direction that explains a point best. Two sides that share the corner it leads to are
// one. Of directions that are off by less than `limit` the collider takes the one of least depth;
// of those that tie, the face's normal comes first.
Explanation explain(const Geom& geom, const Polytope& p, int face, Vec3 off, double limit,
                    SegmentPoint& s) {
  SegmentPoint best = s;
  Vec3 best_off{0, 0, 0};
  Explanation found;
  auto consider = [&] {
    const Vec3 seen = off_segment(s);
    const double error = norm(seen - off) / s.radius;
    const bool same = norm(seen - best_off) < kOn * s.radius;
    if (!same) found.next = std::fmin(found.next, std::fmax(found.error, error));
    const bool both = error < limit && found.error < limit;
    const bool better =
        both ? depth_along(geom, p, s) < depth_along(geom, p, best) - kTied : error < found.error;
    if (better) found.error = error, best = s, best_off = seen;
  };
  look(geom, p, face, -1, false, s);
  consider();
  const bool round = p.geom().type == geom::kCylinder;
  for (int exit = 0; exit < 2 && round; exit++) {
    if (look_at_exit(geom, p, face, exit, s)) consider();
  }
  for (int side = 0; side < p.face_size(face) && !round; side++) {
    for (bool beyond : {false, true}) {
      look(geom, p, face, side, beyond, s);
      const CenterContact::Slide* slide = s.nearest.slide;
      const bool along = slide[0] == CenterContact::kLine;
      if (!along && s.unit) break;  // the end of a cylinder is a rim
      if (beyond && !(along && slide[1] == CenterContact::kLine)) break;
      consider();
    }
  }
  s = best;
  return found;
}

// A cylinder sees it in the direction of least depth: where that is `tolerance` more, the direction
// is off by the root of twice the tolerance over the radius (CON-28). Where rounding stops the
// collider earlier, only one direction may come close.
bool cylinder_looks(const Geom& cylinder, const Polytope& p, int face, Vec3 off, double tolerance,
                    SegmentPoint& s) {
  const double limit = kSeenByCylinder + std::sqrt(2 * tolerance / s.radius);
  const Explanation found = explain(cylinder, p, face, off, limit, s);
  if (found.error < limit) return true;
  const SegmentPoint seen = s;
  if (look_from_rim(cylinder, p, face, off, s) || look_at_rim(cylinder, p, face, off, s) ||
      look_from_rim_at_rim(cylinder, p, face, off, s)) {
    return true;
  }
  s = seen;
  return found.error < kSeenAtRim && found.next > kClearly * found.error;
}

// A capsule sees the face from the point of its segment that is nearest: an end over the face, or a
// point beside it.
bool capsule_looks(const Geom& capsule, const Polytope& p, int face, Vec3 off, double tolerance,
                   SegmentPoint& s) {
  Vec3 half = capsule.size[1] * capsule.axis();
  Vec3 lower = capsule.position + (dot(p.face_normal(face), half) < 0 ? half : -half);
  if (p.geom().type == geom::kCylinder) {
    const Vec3 from = lower - p.geom().position, axis = p.geom().axis();
    if (norm(cross(from, axis)) > p.geom().size[0]) return look_at_rim(capsule, p, face, off, s);
    look(capsule, p, face, -1, false, s);
    return norm(off_segment(s) - off) < kSeenByCylinder * s.radius;
  }
  int nearest = -1;
  double least = INFINITY;
  for (int side = 0; side < p.face_size(face) && !over(p, face, lower); side++) {
    look(capsule, p, face, side, false, s);
    double gap = norm(s.nearest.center[1] - s.nearest.center[0]);
    if (gap < least) least = gap, nearest = side;
  }
  look(capsule, p, face, nearest, false, s);
  return norm(off_segment(s) - off) < kSeen * s.radius || looks_at_fold(capsule, p, face, off, s) ||
         cylinder_looks(capsule, p, face, off, tolerance, s);  // its segment is in the mesh
}

// A point of the line of the surface of geom `owner` that faces a face of the other: one of its
// ends, or where a side of the face cuts it.                                              (CON-16)
bool identify_line(const Geom& geom, const Polytope& other, int owner, double half_margin,
                   double tolerance, ContactGeometry& g) {
  Vec3 n = owner == 0 ? g.normal : -g.normal, a = geom.axis();  // n: to the other geom
  Vec3 x = g.position + (half_margin - g.distance / 2) * n;
  double along = dot(x - geom.position, a);
  Vec3 off = x - geom.position - along * a;
  // tie: segment as long as a face
  bool at_end = std::abs(std::abs(along) - geom.size[1]) < kOn;
  bool capsule = geom.type == geom::kCapsule;

  return other.find_face_with(-n, [&](int f) {
    SegmentPoint& s = g.segment;
    s = {};
    s.owner = owner;
    s.start = s.point = x;
    s.axis = a;
    s.radius = geom.size[0] + half_margin;
    s.unit = !capsule;
    if (!(capsule ? capsule_looks : cylinder_looks)(geom, other, f, off, tolerance, s))
      return false;
    // an end over a side of the face: whichever of the two is farther inside has the point (CON-27)
    const bool crosses = other.crossed_side(f, x, a, s.side);
    // tie: segment within a face
    if (!at_end && !crosses) return false;
    if (crosses) s.rule = SegmentPoint::kPlane, s.share = at_end ? 0.5 : 1;
    g.kind = ContactGeometry::kFace;
    g.face = face_contact(1 - owner, -n, other.clip_vertex(f, 0), x, -half_margin, geom,
                          other.flatness(), g);
    g.face.slide = FaceContact::kSegment;
    return true;
  });
}

bool has_line(int type) { return type == geom::kCapsule || type == geom::kCylinder; }
bool has_faces(int type) {
  return type == geom::kCylinder || type == geom::kBox || type == geom::kMesh;
}

}  // namespace

bool identify_along(const ModelView& m, const DataView& d, const ContactView& contact,
                    ContactGeometry& g) {
  const int id[2] = {contact.geom.v[0], contact.geom.v[1]};
  const int type[2] = {m.geom_type[id[0]], m.geom_type[id[1]]};
  if (m.opt.disableflags & disable::kMultiCCD) return false;
  // within margins MuJoCo does this since 4.0: with a capsule whose radius is larger by half of it,
  // and with other geoms that penetrate, which do not feel it
  double half_margin = (m.geom_margin[id[0]] + m.geom_margin[id[1]]) / 2;
  if (half_margin > 0 && engine().version < 4000000) return false;
  if (half_margin > 0 && type[0] != geom::kCapsule) {
    if (g.distance > 0) return false;
    half_margin = 0;
  }
  if (has_faces(type[0]) && has_faces(type[1])) {
    const Polytope p[2] = {{m, d, id[0], &g.walked[0]}, {m, d, id[1], &g.walked[1]}};
    if (identify_aligned(p, g)) return true;
    if (type[1] != geom::kCylinder && identify_edge_on_face(p, 0, g)) return true;
  }
  for (int owner = 0; owner < 2; owner++) {
    if (!has_line(type[owner]) || !has_faces(type[1 - owner])) continue;
    const Polytope other(m, d, id[1 - owner], &g.walked[1 - owner]);
    const Geom geom = load_geom(m, d, id[owner]);
    const double tolerance = std::fmax(0, m.opt.ccd_tolerance);
    if (identify_line(geom, other, owner, half_margin, tolerance, g)) return true;
  }
  return false;
}

}  // namespace mujacobian

#include "contact/segment_direction.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // length or slope below which a number counts as zero

// Lean of a normal at a rim below which rounding decides where on the rim it is.
constexpr double kFlat = 1e-12;

// Error of the direction from the segment of a capsule to a mesh, whose faces are not quite flat,
// from a cylinder to any geom, and at a rim, in rad.
constexpr double kMeshError = 1e-6, kCylinderError = 1e-5, kRimError = 1e-4;

// How many times larger the error of every other direction must be.
constexpr double kClearly = 4;

// Depths that differ by less are equal up to rounding.
constexpr double kTied = 1e-14;

// Change of a direction at which an iteration has converged.
constexpr double kConverged = 1e-15;

// Whether p is over or under a face, not beside it.
bool over(const Polytope& mesh, int face, Vec3 p) {
  Vec3 n = mesh.face_normal(face);
  int left = 0, size = mesh.face_size(face);
  for (int k = 0; k < size; k++) {
    Vec3 a = mesh.face_vertex(face, k), b = mesh.face_vertex(face, (k + 1) % size);
    left += dot(cross(n, b - a), p - a) > 0;
  }
  return left == 0 || left == size;
}

// Finds the middle of the part of a segment that is beside an edge parallel to it. A tilt moves the
// nearest point to one of the ends of this part, and the direction changes linearly with its place.
// The middle therefore has the average of the derivatives of both sides. It moves with the ends,
// each of which belongs to the segment or to the edge. (CON-35)
bool middle_beside(const Geom& geom, Vec3 from, Vec3 to, CenterPair& nearest) {
  constexpr double kParallel = 1e-12;
  const Vec3 a = geom.axis(), e = (1 / norm(to - from)) * (to - from);
  // tie: segment parallel to an edge
  if (norm(cross(a, e)) > kParallel) return false;
  const double half = geom.size[1], s = dot(from - geom.position, a),
               t = dot(to - geom.position, a);
  const double low = std::fmax(-half, std::fmin(s, t)), high = std::fmin(half, std::fmax(s, t));
  if (high <= low) return false;
  nearest = {};
  nearest.center[0] = geom.position + (low + high) / 2 * a;
  nearest.center[1] = from + dot(nearest.center[0] - from, e) * e;
  nearest.axis[0] = a, nearest.axis[1] = e;
  nearest.slide[0] = CenterPair::kMiddle, nearest.slide[1] = CenterPair::kLine;
  nearest.share = 0.5 * (low > -half) + 0.5 * (high < half);
  return true;
}

// Sets the direction between the segment and an edge. `beyond`: the segment has penetrated past the
// edge, so that the direction is reversed.
void direct_to_edge(const Geom& geom, Vec3 from, Vec3 to, bool beyond, SegmentPoint& s) {
  s.direction = SegmentPoint::kNearest;
  if (!middle_beside(geom, from, to, s.nearest)) {
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
      if (t[k] > 0 && t[k] < 1) s.nearest.slide[k] = CenterPair::kLine;
    }
  }
  Vec3 span = s.nearest.center[1] - s.nearest.center[0];
  s.towards = ((beyond ? -1 : 1) / norm(span)) * span;
}

// Whether the nearest point of the segment was found by middle_beside.
bool is_beside(const SegmentPoint& s) {
  return s.direction == SegmentPoint::kNearest && s.nearest.slide[0] != CenterPair::kLine &&
         s.nearest.slide[1] == CenterPair::kLine &&
         norm(cross(s.nearest.axis[0], s.nearest.axis[1])) < kOn;
}

// Sets the direction between the segment and a side of a face, or the normal of the face if `side`
// is negative.
void direct(const Geom& geom, const Polytope& p, int face, int side, bool beyond, SegmentPoint& s) {
  s.direction = SegmentPoint::kFaceNormal;
  s.towards = -p.face_normal(face);
  if (side < 0) return;
  const Vec3 from = p.face_vertex(face, side),
             to = p.face_vertex(face, (side + 1) % p.face_size(face));
  direct_to_edge(geom, from, to, beyond, s);
}

// Sets the normal between the rim of a cylinder and the line through `from` along e. It is
// perpendicular to the line and connects it with the rim. `u` is the direction of its part across
// the axis. Newton's method on u begins with the given one: the normal of the collider may be off
// by more than its part across the axis shows.                                            (CON-33)
bool rim_to_line(const Geom& cylinder, Vec3 from, Vec3 e, Vec3 u, SegmentPoint& s) {
  constexpr int kSteps = 20;
  const double radius = cylinder.size[0], half = cylinder.size[1];
  const Vec3 a = cylinder.axis();
  const double slope = dot(e, a);
  if (std::abs(slope) < kOn) return false;
  double change = INFINITY;
  for (int step = 0; step < kSteps && std::abs(change) > kConverged; step++) {
    // the gap from the rim to the line, across the line and the normal n
    const Vec3 t = cross(a, u);
    const double lean = -dot(u, e) / slope, lean_rate = -dot(t, e) / slope;
    const Vec3 n = u + lean * a, rate = t + lean_rate * a;
    const Vec3 rim = cylinder.position + std::copysign(half, lean) * a + radius * u;
    const Vec3 gap = from - rim;
    const double miss = dot(gap, cross(n, e));
    const double slant = dot(gap, cross(rate, e)) - radius * dot(t, cross(n, e));
    change = -miss / slant;
    if (!(std::abs(change) < kRimError)) return false;
    const double length = norm(n), flat = 1 / length;
    s.towards = flat * n;
    s.rim.side[0] = {.point = rim, .follow = outer((radius / flat) * t, t)};
    s.rim.side[1] = {.point = from - dot(gap, e) * e, .slide = {e, {}}, .slides = 1};
    u = u + change * t;
    u = (1 / norm(u)) * u;
  }
  s.direction = SegmentPoint::kRim;
  return true;
}

// Sets the normal between the rim of a cylinder and a side of the face. `off` is its part across
// the axis.
bool rim_to_side(const Geom& cylinder, const Polytope& p, int face, Vec3 off, SegmentPoint& s) {
  const Vec3 u = (1 / norm(off)) * off;
  for (int side = 0, size = p.face_size(face); side < size; side++) {
    const Vec3 from = p.face_vertex(face, side), to = p.face_vertex(face, (side + 1) % size);
    const Vec3 e = (1 / norm(to - from)) * (to - from);
    if (!rim_to_line(cylinder, from, e, u, s)) continue;
    // the point where the normal meets the side
    const Vec3 on_side = s.rim.side[1].point;
    const double error = norm(surface_offset(s) - off) / s.radius;
    if (error < kRimError && dot(on_side - from, e) >= 0 && dot(to - on_side, e) >= 0) return true;
  }
  return false;
}

// Finds the point of the rim of a cap that is farthest along -n.
bool rim_against(const Geom& cylinder, Vec3 cap, Vec3 n, SupportSide& side) {
  Vec3 radial = dot(n, cap) * cap - n;
  double flat = norm(radial);
  if (flat < kFlat) return false;
  radial = (1 / flat) * radial;
  Vec3 t = cross(cap, radial), middle = cylinder.position + cylinder.size[1] * cap;
  side = {.point = middle + cylinder.size[0] * radial,
          .follow = outer((cylinder.size[0] / flat) * t, t)};
  return true;
}

// Sets the normal between the side of a cylinder and the rim of a cap, at the point where the side
// leaves the cap: the lower (exit 0) or the higher place (exit 1) along the axis. The normal is
// perpendicular to the axis and leans to the center of the rim. A fixed-point iteration computes
// the place from the normal, and the normal from the place. (CON-30)
bool side_to_exit(const Geom& cylinder, const Polytope& p, int face, int exit, SegmentPoint& s) {
  constexpr int kSteps = 50;
  const Geom& other = p.geom();
  const Vec3 a = cylinder.axis(), cap = p.face_normal(face);
  const Vec3 from = cylinder.position - (other.position + other.size[1] * cap);
  const double rise = dot(a, cap), height = dot(from, cap);
  Vec3 d = -cap;
  double along = 0, change = INFINITY;
  for (int step = 0; step < kSteps && change > kConverged; step++) {
    // start + x slope is the point of the cap's plane from which the normal leads to place x of the
    // axis; x is where this point is on the rim
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
  s.direction = SegmentPoint::kRim;
  s.towards = d;
  s.rim.side[0] = {.point = cylinder.position + along * a,
                   .radius = cylinder.size[0],
                   .slide = {a, {}},
                   .slides = 1};
  return rim_against(other, cap, d, s.rim.side[1]);
}

// Sets the normal between the side of a cylinder or capsule, or the end of a capsule, and the rim
// of a cap.
bool surface_to_rim(const Geom& geom, const Polytope& p, int face, Vec3 off, SegmentPoint& s) {
  const Geom& other = p.geom();
  if (other.type != geom::kCylinder) return false;
  const Vec3 a = geom.axis(), cap = p.face_normal(face);
  const double half = geom.size[1], length = norm(off) / s.radius;
  s.direction = SegmentPoint::kRim;
  SupportSide* side = s.rim.side;
  // end 0: the side; ends -1 and 1: the ends, from which the normal leans outward
  for (int end = -1; end <= 1; end++) {
    double lean = std::sqrt(std::fmax(0, 1 - length * length));
    s.towards = end == 0 ? (1 / norm(off)) * off : (1 / s.radius) * off + end * lean * a;
    if (!rim_against(other, cap, s.towards, side[1])) continue;
    double along = end == 0 ? dot(side[1].point - geom.position, a) : end * half;
    side[0] = {.point = geom.position + along * a,
               .radius = geom.size[0],
               .slide = {a, {}},
               .slides = end == 0};
    Vec3 gap = cross(side[1].point - side[0].point, s.towards);
    if (std::abs(along) <= half && norm(gap) < kRimError * s.radius) return true;
  }
  return false;
}

// Sets the normal between the rim of a cylinder and the rim of a cap. `off` is its part across the
// axis. The angle by which it leans is found by bisection.
bool rim_to_rim(const Geom& cylinder, const Polytope& p, int face, Vec3 off, SegmentPoint& s) {
  if (p.geom().type != geom::kCylinder) return false;
  constexpr int kAngles = 64, kHalvings = 50;
  const Vec3 a = cylinder.axis(), u = (1 / norm(off)) * off, t = cross(a, u);
  s.direction = SegmentPoint::kRim;
  SupportSide* side = s.rim.side;
  for (int end = -1; end <= 1; end += 2) {
    const Vec3 rim = cylinder.position + end * cylinder.size[1] * a + cylinder.size[0] * u;
    // distance of the points from a common normal, in the plane in which it leans
    auto gap = [&](double angle) {
      s.towards = std::cos(angle) * u + std::sin(angle) * end * a;
      if (!rim_against(p.geom(), p.face_normal(face), s.towards, side[1])) return 0.0;
      const Vec3 across = std::cos(angle) * end * a - std::sin(angle) * u;
      return dot(side[1].point - rim, across);
    };
    for (int k = 0; k < kAngles; k++) {
      double low = std::numbers::pi / 2 * k / kAngles,
             high = std::numbers::pi / 2 * (k + 1) / kAngles;
      const bool rising = gap(high) > gap(low);
      if (gap(low) * gap(high) > 0) continue;
      for (int h = 0; h < kHalvings; h++) {
        const double middle = (low + high) / 2;
        ((gap(middle) > 0) == rising ? high : low) = middle;
      }
      if (std::abs(dot(side[1].point - rim, t)) > kRimError * s.radius) continue;
      side[0] = {.point = rim, .follow = outer((cylinder.size[0] / std::cos(low)) * t, t)};
      return true;
    }
  }
  return false;
}

// Half the extent of a cylinder along a direction.
double cylinder_reach(const Geom& cylinder, Vec3 direction) {
  const Vec3 a = cylinder.axis();
  const double along = dot(direction, a);
  return cylinder.size[1] * std::abs(along) + cylinder.size[0] * norm(direction - along * a);
}

// Depth of penetration of the geom and the polytope along the direction of `s`.
double depth_along(const Geom& geom, const Polytope& p, const SegmentPoint& s) {
  const Vec3 n = s.towards;
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

// Errors of the directions that were tried, in rad: of the one that is taken, and the least one of
// the others.
struct Explanation {
  double error = INFINITY, next = INFINITY;
};

// Sets the direction that explains a point best, among the normal of the face and the directions to
// its sides. Two sides with the same direction count as one. Of the directions whose error is below
// `limit`, the collider takes the one of least depth, and the normal of the face if they tie.
Explanation explain(const Geom& geom, const Polytope& p, int face, Vec3 off, double limit,
                    SegmentPoint& s) {
  SegmentPoint best = s;
  Vec3 best_off{0, 0, 0};
  Explanation found;
  auto consider = [&] {
    const Vec3 tried = surface_offset(s);
    const double error = norm(tried - off) / s.radius;
    const bool same = norm(tried - best_off) < kOn * s.radius;
    if (!same) found.next = std::fmin(found.next, std::fmax(found.error, error));
    const bool both = error < limit && found.error < limit;
    const double gain = both ? depth_along(geom, p, best) - depth_along(geom, p, s) : 0;
    // a corner is as near as the parallel edge that ends there
    const bool whole = is_beside(s) && best.direction == SegmentPoint::kNearest;
    const bool better = both ? gain > (whole ? -kTied : kTied) : error < found.error;
    if (better) found.error = error, best = s, best_off = tried;
  };
  direct(geom, p, face, -1, false, s);
  consider();
  const bool round = p.geom().type == geom::kCylinder;
  for (int exit = 0; exit < 2 && round; exit++) {
    if (side_to_exit(geom, p, face, exit, s)) consider();
  }
  for (int side = 0; side < p.face_size(face) && !round; side++) {
    for (bool beyond : {false, true}) {
      direct(geom, p, face, side, beyond, s);
      const CenterPair::Slide* slide = s.nearest.slide;
      const bool along = slide[0] == CenterPair::kLine || is_beside(s);
      if (!along && s.unit) break;  // the end of a cylinder is a rim
      if (beyond && !(along && slide[1] == CenterPair::kLine)) break;
      consider();
    }
  }
  s = best;
  return found;
}

// Sets the direction to a polygon that is not flat: the collider uses the triangle of three of its
// vertices, or the line through two. Of those that explain `off`, it takes the one of least depth.
bool fold_direction(const Geom& capsule, const Polytope& p, int face, Vec3 off, SegmentPoint& s) {
  SegmentPoint best = s;
  double least = INFINITY;
  auto consider = [&] {
    if (norm(surface_offset(s) - off) >= kOn * s.radius) return;
    const double depth = depth_along(capsule, p, s);
    if (depth < least - kTied) least = depth, best = s;
  };
  const int size = p.face_size(face);
  for (int i = 0; i < size; i++) {
    for (int j = i + 1; j < size; j++) {
      const Vec3 a = p.face_vertex(face, i), b = p.face_vertex(face, j);
      direct_to_edge(capsule, a, b, false, s);
      consider();
      s.direction = SegmentPoint::kFaceNormal;
      for (int k = j + 1; k < size; k++) {
        const Vec3 n = cross(b - a, p.face_vertex(face, k) - a);
        s.towards = ((dot(n, p.face_normal(face)) > 0 ? -1 : 1) / norm(n)) * n;
        consider();
      }
    }
  }
  s = best;
  return least < INFINITY;
}

// Sets the direction of a cylinder, which is that of least depth. A depth that is off by
// `tolerance` turns the direction by the root of twice the tolerance over the radius (CON-28). If
// rounding stops the collider earlier, only one direction may come close.
bool cylinder_direction(const Geom& cylinder, const Polytope& p, int face, Vec3 off,
                        double tolerance, SegmentPoint& s) {
  const double limit = kCylinderError + std::sqrt(2 * tolerance / s.radius);
  const Explanation found = explain(cylinder, p, face, off, limit, s);
  if (found.error < limit) return true;
  const SegmentPoint best = s;
  if (rim_to_side(cylinder, p, face, off, s) || surface_to_rim(cylinder, p, face, off, s) ||
      rim_to_rim(cylinder, p, face, off, s)) {
    return true;
  }
  s = best;
  return found.error < kRimError && found.next > kClearly * found.error;
}

// Sets the direction of a capsule whose lower end is beyond the rim of a cap. It is the normal at
// the rim, also where the capsule is so flat that `off` does not show how this normal leans.
bool capsule_to_rim(const Geom& capsule, const Polytope& p, int face, Vec3 off, double tolerance,
                    SegmentPoint& s) {
  if (surface_to_rim(capsule, p, face, off, s)) return true;
  const double limit = kCylinderError + std::sqrt(2 * tolerance / s.radius);
  if (explain(capsule, p, face, off, limit, s).error > limit) return false;
  const bool parallel = std::abs(dot(capsule.axis(), p.face_normal(face))) < kTied;
  return parallel || s.direction != SegmentPoint::kFaceNormal;
}

// Sets the direction of a capsule: the normal of the face if the nearest point of the segment is an
// end over the face, otherwise the direction to the nearest side.
bool capsule_direction(const Geom& capsule, const Polytope& p, int face, Vec3 off, double tolerance,
                       SegmentPoint& s) {
  Vec3 half = capsule.size[1] * capsule.axis();
  Vec3 lower = capsule.position + (dot(p.face_normal(face), half) < 0 ? half : -half);
  if (p.geom().type == geom::kCylinder) {
    const Vec3 from = lower - p.geom().position, axis = p.geom().axis();
    if (norm(cross(from, axis)) > p.geom().size[0]) {
      return capsule_to_rim(capsule, p, face, off, tolerance, s);
    }
    direct(capsule, p, face, -1, false, s);
    return norm(surface_offset(s) - off) < kCylinderError * s.radius;
  }
  int nearest = -1;
  double least = INFINITY;
  for (int side = 0; side < p.face_size(face) && !over(p, face, lower); side++) {
    direct(capsule, p, face, side, false, s);
    double gap = norm(s.nearest.center[1] - s.nearest.center[0]);
    // a corner is as near as the parallel edge that ends there
    if (gap < least - (is_beside(s) ? -kTied : kTied)) least = gap, nearest = side;
  }
  direct(capsule, p, face, nearest, false, s);
  const double error = norm(surface_offset(s) - off) / s.radius;
  if (error < kOn) return true;
  // the direction turns with the mesh, so that its error is one of the derivative: the triangles of
  // a polygon come before its normal, which is accurate to single precision
  const SegmentPoint near = s;
  if (fold_direction(capsule, p, face, off, s)) return true;
  s = near;
  return error < kMeshError ||
         cylinder_direction(capsule, p, face, off, tolerance, s);  // the segment is in the mesh
}

}  // namespace

bool stands_on_cap(const Geom& cylinder, const Polytope& p, int face) {
  const Vec3 a = cylinder.axis();
  SegmentPoint s{.axis = a, .radius = cylinder.size[0], .unit = true};
  auto depth = [&](Vec3 towards) {
    s.towards = towards;
    return depth_along(cylinder, p, s);
  };
  return std::fmin(depth(a), depth(-a)) < depth(-p.face_normal(face));
}

bool find_direction(const Geom& geom, const Polytope& p, int face, Vec3 off, double tolerance,
                    SegmentPoint& s) {
  return (geom.type == geom::kCapsule ? capsule_direction : cylinder_direction)(geom, p, face, off,
                                                                                tolerance, s);
}

}  // namespace mujacobian

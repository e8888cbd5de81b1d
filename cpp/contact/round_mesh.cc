// Spheres and capsules against meshes: a sphere at the point of the segment nearest to the mesh, or
// the ends of the part of a capsule's surface that lies along a face.
#include <algorithm>
#include <cmath>

#include "contact/polytope.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;

// Cosine under which faces are looked at that may be the one with a given normal.
constexpr double kFacing = 0.99;

// How well the direction from the segment to a mesh is known, whose faces are not quite flat.
constexpr double kSeen = 1e-6;

// A sphere of the first geom, its center fixed or on a line, against a feature of a mesh.
bool identify_round(const Geom& geom, Vec3 center, bool slides, const Polytope& mesh,
                    ContactGeometry& g) {
  const Feature feature = mesh.facing(-g.normal);
  if (feature.size == 3) {
    g.kind = ContactGeometry::kFace;
    g.face = face_contact(1, -g.normal, feature.point[0], center, geom.size[0], geom,
                          mesh.flatness(), g);
    return !slides;
  }
  g.kind = ContactGeometry::kCenters;
  g.centers = {};
  g.centers.center[0] = center;
  g.centers.center[1] = g.position + (g.distance / 2) * g.normal;
  g.centers.radius[0] = geom.size[0];
  if (slides) {
    g.centers.slide[0] = CenterContact::kLine;
    g.centers.axis[0] = geom.axis();
  }
  if (feature.size == 2) {
    g.centers.slide[1] = CenterContact::kLine;
    g.centers.axis[1] = feature.along();
    Vec3 gap = cross(g.centers.center[1] - feature.point[0], g.centers.axis[1]);
    return norm(gap) < kOn;
  }
  return norm(g.centers.center[1] - feature.point[0]) < kOn;
}

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

bool within(double t) { return t > 0 && t < 1; }

// In which direction the collider sees a face from a segment above it, and how that moves: along
// the face's normal from an end over the face, else from the segment to the nearest side.
void see_face(const Geom& capsule, const Polytope& mesh, int face, SegmentPoint& p) {
  Vec3 down = -mesh.face_normal(face), a = capsule.axis();
  Vec3 end[2] = {capsule.position - capsule.size[1] * a, capsule.position + capsule.size[1] * a};
  p.direction = down;
  if (over(mesh, face, end[dot(down, a) > 0])) return;
  double least = INFINITY;
  p.nearest_direction = true;
  for (int k = 0, size = mesh.face_size(face); k < size; k++) {
    Vec3 from = mesh.face_vertex(face, k), to = mesh.face_vertex(face, (k + 1) % size);
    double s, t;
    nearest_points(end[0], end[1], from, to, s, t);
    Vec3 center[2] = {end[0] + s * (end[1] - end[0]), from + t * (to - from)};
    double gap = norm(center[1] - center[0]);
    if (!(gap < least)) continue;
    least = gap;
    p.direction = (1 / gap) * (center[1] - center[0]);
    p.nearest = {{center[0], center[1]},
                 {0, 0},
                 {within(s) ? CenterContact::kLine : CenterContact::kFixed,
                  within(t) ? CenterContact::kLine : CenterContact::kFixed},
                 {a, (1 / norm(to - from)) * (to - from)},
                 {}};
  }
}

// What the distance to the segment is larger by than the radius, in the collider.
double half_margin(const ModelView& m, const ContactView& contact) {
  return (m.geom_margin[contact.geom.v[0]] + m.geom_margin[contact.geom.v[1]]) / 2;
}

// A point of the line of a capsule's surface that faces a face of the mesh: one of its ends, or
// where a side of the face cuts it.                                                       (CON-16)
bool identify_lying(const Geom& capsule, const Polytope& mesh, double half_margin,
                    ContactGeometry& g) {
  double radius = capsule.size[0] + half_margin;
  Vec3 a = capsule.axis(), x = g.position + (half_margin - g.distance / 2) * g.normal;
  double along = dot(x - capsule.position, a);
  Vec3 off = x - capsule.position - along * a;
  bool at_end = std::abs(std::abs(along) - capsule.size[1]) < kOn;

  int faces[Polytope::kRoom];
  for (int j = 0, n = mesh.faces_facing(-g.normal, kFacing, faces); j < n; j++) {
    if (norm(mesh.face_normal(faces[j]) + g.normal) > kOn) continue;
    SegmentPoint& p = g.segment;
    p = {};
    p.start = p.point = x;
    p.axis = a;
    p.radius = radius;
    see_face(capsule, mesh, faces[j], p);
    Vec3 expected = radius * (p.direction - dot(p.direction, a) * a);
    if (norm(expected - off) > kSeen * radius) continue;
    if (!at_end) {
      p.rule = SegmentPoint::kPlane;
      Vec3 sides[2], corner;
      int k = 0, count = mesh.sides_through(faces[j], x, sides, corner);
      while (k < count && std::abs(dot(sides[k], a)) < kOn) k++;
      if (k == count) continue;
      p.side = sides[k];
    }
    g.kind = ContactGeometry::kFace;
    g.face = face_contact(1, -g.normal, mesh.face_vertex(faces[j], 0), x, -half_margin, capsule,
                          mesh.flatness(), g);
    g.face.slide = FaceContact::kSegment;
    return true;
  }
  return false;
}

}  // namespace

bool identify_mesh_round(const ModelView& m, const DataView& d, const ContactView& contact,
                         ContactGeometry& g) {
  const Geom geom = load_geom(m, d, contact.geom.v[0]);
  const Polytope mesh(m, d, contact.geom.v[1]);
  if (geom.type == geom::kSphere) return identify_round(geom, geom.position, false, mesh, g);
  // MuJoCo looks for a capsule along a face first, before 4.0 not within margins
  const double margin = half_margin(m, contact);
  bool lying =
      !(m.opt.disableflags & disable::kMultiCCD) && (margin == 0 || engine().version >= 4000000);
  if (lying && identify_lying(geom, mesh, margin, g)) return true;
  // the point of the capsule's segment at MuJoCo's witness
  double half = geom.size[1];
  Vec3 witness = g.position - (g.distance / 2 + geom.size[0]) * g.normal;
  double along = dot(witness - geom.position, geom.axis());
  bool inside = std::abs(along) < half * (1 - 1e-9);
  if (inside) g.region = half - std::abs(along);
  Vec3 center = geom.position + std::clamp(along, -half, half) * geom.axis();
  return identify_round(geom, center, inside, mesh, g);
}

}  // namespace mujacobian

// Meshes and boxes through the convex collider: vertices on faces, crossing edges, and the clipped
// points of manifolds.
#include <cmath>

#include "contact/polytope.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;

// Faces whose normals are at least this opposed are clipped against one another (mjFACE_TOL).
constexpr double kAligned = 0.996;

// A face of `owner` and a point x of the other polytope that is one of its vertices.
bool identify_vertex(const Polytope p[2], int owner, const Feature& face, Vec3 x,
                     ContactGeometry& g) {
  const Polytope &ref = p[owner], &other = p[1 - owner];
  Vec3 outward = owner == 0 ? g.normal : -g.normal;
  g.kind = ContactGeometry::kFace;
  g.face = face_contact(owner, outward, face.point[0], x, 0, other.geom(), ref.flatness(), g);
  return other.is_vertex(x);
}

// The same where an edge of the other polytope crosses a side of the face.
bool identify_crossing(const Polytope p[2], int owner, const Feature& face, Vec3 x,
                       ContactGeometry& g) {
  const Polytope& ref = p[owner];
  identify_vertex(p, owner, face, x, g);
  if (!p[1 - owner].edge_through(x, g.face.along)) return false;
  int faces[Polytope::kRoom];
  for (int j = 0, count = ref.faces_near(face.point[0], ref.flatness(), faces); j < count; j++) {
    if (norm(ref.face_normal(faces[j]) - g.face.outward) > kOn) continue;
    Vec3 sides[2], corner;
    for (int k = 0, n = ref.sides_through(faces[j], x, sides, corner); k < n; k++) {
      if (std::abs(dot(sides[k], g.face.along)) < kOn) continue;
      g.face.slide = FaceContact::kEdge;
      g.face.side = sides[k];
      return true;
    }
  }
  return false;
}

// Two faces that are nearly aligned: the polygon of geom 1 clipped by the sides of the face of geom
// 0, then projected onto that face, whose points are measured against the polygon's plane. (CON-13)
bool identify_projected(const Polytope p[2], const Feature& face, ContactGeometry& g) {
  Vec3 x = g.position - (g.distance / 2) * g.normal;
  int faces[Polytope::kRoom];
  for (int j = 0, count = p[0].faces_near(x, p[0].flatness(), faces); j < count; j++) {
    int f = faces[j];
    Vec3 base = p[0].face_normal(f);
    double slope = dot(base, g.normal);
    double height = dot(base, x - p[0].face_vertex(f, 0));
    if (slope < kAligned || std::abs(height) > p[0].flatness()) continue;
    FaceContact c =
        face_contact(1, -g.normal, face.point[0], x, 0, p[0].geom(), p[1].flatness(), g);
    c.slide = FaceContact::kFoot;
    c.base = base;
    c.above = x + (dot(g.normal, face.point[0] - x) / slope) * base;
    g.kind = ContactGeometry::kFace;
    g.face = c;
    if (p[1].is_vertex(c.above)) return true;
    if (!p[1].edge_through(c.above, g.face.along)) continue;
    Vec3 sides[2], corner;
    for (int k = 0, n = p[0].sides_through(f, x, sides, corner); k < n; k++) {
      if (std::abs(dot(sides[k], g.face.along)) < kOn) continue;
      g.face.side = sides[k];
      return true;
    }
  }
  return false;
}

// The same before MuJoCo 4.0: measured along the normal of the face of geom 0, but shifted along
// the polygon's own.                                                                     (CON-12)
bool identify_manifold(const Polytope p[2], ContactGeometry& g) {
  Vec3 x = g.position + (g.distance / 2) * g.normal;
  // the foot of x is as deep under the face as the normals differ
  double depth = p[0].flatness() + (1 - kAligned) * std::abs(g.distance);
  int faces[Polytope::kRoom];
  for (int j = 0, n = p[0].faces_near(x - g.distance * g.normal, depth, faces); j < n; j++) {
    int f = faces[j];
    Vec3 outward = p[0].face_normal(f);
    if (dot(outward, g.normal) < kAligned) continue;
    FaceContact c =
        face_contact(0, outward, p[0].face_vertex(f, 0), x, 0, p[1].geom(), p[0].flatness(), g);
    if (c.distance != g.distance) continue;
    c.shift = g.normal;
    c.shift_with_other = true;
    g.kind = ContactGeometry::kFace;

    Vec3 sides[2], corner;
    int count = p[0].sides_through(f, x, sides, corner);
    bool fixed = p[1].is_vertex(x);
    if (!fixed && p[1].edge_through(x, c.along)) {
      for (int k = 0; k < count && c.slide == FaceContact::kFixed; k++) {
        if (std::abs(dot(sides[k], c.along)) < kOn) continue;
        c.slide = FaceContact::kEdge;
        c.side = sides[k];
      }
    } else if (!fixed && count == 2) {
      c.slide = FaceContact::kCorner;
      c.side = g.normal;
      c.corner = corner;
    }
    if (!fixed && c.slide == FaceContact::kFixed) continue;
    g.face = c;
    return true;
  }
  return false;
}

bool identify_edge_edge(const Feature feature[2], ContactGeometry& g) {
  g.kind = ContactGeometry::kEdges;
  EdgeContact& e = g.edges;
  for (int s = 0; s < 2; s++) {
    e.point[s] = g.position + ((s ? 0.5 : -0.5) * g.distance) * g.normal;
    e.axis[s] = feature[s].along();
    Vec3 gap = e.point[s] - feature[s].point[0];
    gap = gap - dot(gap, e.axis[s]) * e.axis[s];
    if (norm(gap) > kOn) return false;
  }
  Vec3 product = cross(e.axis[0], e.axis[1]);
  e.sign = dot(product, g.normal) > 0 ? 1 : -1;
  return norm(product) > kOn;
}

}  // namespace

bool identify_convex(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& g) {
  const Polytope p[2] = {{m, d, contact.geom.v[0]}, {m, d, contact.geom.v[1]}};
  const Vec3 x[2] = {g.position - (g.distance / 2) * g.normal,
                     g.position + (g.distance / 2) * g.normal};
  const Feature feature[2] = {p[0].facing(g.normal), p[1].facing(-g.normal)};
  // aligned faces come before edges on faces, as in the collider: where they are nearly parallel
  // the points are the same but move differently
  if (feature[1].size == 3) {
    if (identify_vertex(p, 1, feature[1], x[0], g)) return true;
    if (engine().version >= 4000000 ? identify_projected(p, feature[1], g)
                                    : identify_manifold(p, g)) {
      return true;
    }
    if (identify_crossing(p, 1, feature[1], x[0], g)) return true;
  }
  if (feature[0].size == 3) {
    if (identify_vertex(p, 0, feature[0], x[1], g)) return true;
    if (identify_crossing(p, 0, feature[0], x[1], g)) return true;
  }
  if (feature[0].size == 2 && feature[1].size == 2) return identify_edge_edge(feature, g);

  // apart: vertex to vertex, or vertex to edge
  if (feature[0].size > 2 || feature[1].size > 2 || g.distance <= 0) return false;
  g.kind = ContactGeometry::kCenters;
  g.centers = {};
  for (int s = 0; s < 2; s++) {
    g.centers.center[s] = x[s];
    if (feature[s].size == 1) continue;
    g.centers.slide[s] = CenterContact::kLine;
    g.centers.axis[s] = feature[s].along();
  }
  return true;
}

}  // namespace mujacobian

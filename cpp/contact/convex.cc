// Meshes and boxes through the convex collider: vertices on faces, crossing edges, and the clipped
// points of manifolds.
#include <algorithm>
#include <cmath>

#include "contact/clip.h"
#include "contact/simplex.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;

// How well the collider finds points along geoms that are apart, within a margin: their distance
// and normal it knows to rounding.
constexpr double kSeen = 3e-8;

double seen(const ContactGeometry& g) { return g.distance > 0 ? kSeen : kOn; }

// How well the same arithmetic gives MuJoCo's distances. Around a vertex there are many faces, and
// clipping by the wrong one may differ by no more than kOn.
constexpr double kRepeated = 1e-13;

// Distance from its plane up to which a face is one: its slope is off by this over its size.
constexpr double kEven = 1e-12;

// Faces whose normals are at least this opposed are clipped against one another (mjFACE_TOL).
constexpr double kAligned = 0.996;

// A face of `owner` and a point x of the other polytope that is one of its vertices.
bool identify_vertex(const Polytope p[2], int owner, const Feature& face, Vec3 x,
                     ContactGeometry& g) {
  const Polytope &ref = p[owner], &other = p[1 - owner];
  Vec3 outward = owner == 0 ? g.normal : -g.normal;
  g.kind = ContactGeometry::kFace;
  g.face = face_contact(owner, outward, face.point[0], x, 0, other.geom(), ref.flatness(), g);
  // tie: nearest point of a face
  return std::abs(g.face.distance - g.distance) < kOn && other.is_vertex(x, -outward, seen(g));
}

// Where on the boundary of a face a point is, seen along `ray` (zero: from everywhere).
struct BoundaryPoint {
  Vec3 point;
  Vec3 along;  // of the edge, zero at a vertex
};

bool on_boundary(const Polytope& p, int face, Vec3 x, Vec3 ray, BoundaryPoint& found) {
  auto lateral = [&](Vec3 v) { return v - dot(v, ray) * ray; };
  auto is_nil = [&](Vec3 v) { return dot(v, v) < kOn * kOn; };
  int size = p.face_size(face);
  bool on_edge = false;
  Vec3 a = p.face_vertex(face, size - 1), from_a = lateral(x - a);
  for (int k = 0; k < size; k++) {
    const Vec3 b = p.face_vertex(face, k), from_b = lateral(x - b);
    if (is_nil(from_b)) {
      found = {b, {0, 0, 0}};
      return true;
    }
    const Vec3 across = from_a - from_b;
    const double along = dot(across, from_a), length = dot(across, across);
    if (!on_edge && along >= 0 && along <= length && length > 0) {
      const double t = along / length;
      on_edge = is_nil(from_a - t * across);
      if (on_edge) found = {a + t * (b - a), (1 / norm(b - a)) * (b - a)};
    }
    a = b, from_a = from_b;
  }
  return on_edge;
}

// MuJoCo measures from the vertex from which it clips.
double height_over(const Polytope& p, int face, Vec3 x) {
  return dot(p.face_normal(face), x - p.clip_vertex(face, 0));
}

// How far the vertices of a face are from the plane through x.
double unevenness(const Polytope& p, int face, Vec3 normal, Vec3 x) {
  double most = 0;
  for (int k = 0, size = p.face_size(face); k < size; k++) {
    most = std::fmax(most, std::abs(dot(normal, p.face_vertex(face, k) - x)));
  }
  return most;
}

// Two faces that are nearly aligned: the polygon of geom 1 clipped by the sides of the face of geom
// 0, then projected onto that face.                                                       (CON-13)
bool identify_projected(const Polytope p[2], int f0, int f1, double agreement, ContactGeometry& g) {
  Vec3 x = g.position - (g.distance / 2) * g.normal, base = p[0].face_normal(f0);
  if (std::abs(height_over(p[0], f0, x)) > kOn) return false;
  g.kind = ContactGeometry::kFace;
  g.face = {1,  -g.normal, x,  0,  g.distance, FaceContact::kFixed, p[0].geom(),
            {}, {},        {}, {}, base,       -g.normal,           false};
  BoundaryPoint y;
  ClippedVertex v;
  auto use_clipped = [&] {
    if (!find_clipped(p, f0, f1, x, base, g.position, v)) return false;
    g.face.slide = FaceContact::kClippedFoot;
    g.face.above = v.point;
    g.face.distance = dot(g.normal, v.point - x);
    std::copy(v.motion, v.motion + 6, g.clipped);
    return std::abs(g.face.distance - g.distance) < agreement;
  };
  if (on_boundary(p[1], f1, x, base, y)) {
    // a vertex has no side of the other face through it, and an edge has one, unless features tie
    const bool vertex = dot(y.along, y.along) == 0;
    Vec3 sides[2], corner;
    if (p[0].sides_through(f0, x, sides, corner) > (vertex ? 0 : 1) && use_clipped()) return true;
    g.face.slide = FaceContact::kFoot;
    g.face.above = y.point;
    g.face.along = y.along;
    g.face.distance = dot(g.normal, y.point - x);
    if (vertex || p[0].crossed_side(f0, x, y.along, g.face.side)) return true;
  }
  // a corner of the face of geom 0 under the polygon, which in meshes is flat to single precision
  // only: a plane serves where the clipping cannot be repeated
  g.face.slide = FaceContact::kFixed;
  const FaceContact on_plane = g.face;
  Vec3 above = x + (g.distance / dot(g.normal, base)) * base;
  const bool at_corner = on_boundary(p[0], f0, x, base, y) && dot(y.along, y.along) == 0;
  const double uneven = at_corner ? unevenness(p[1], f1, g.normal, above) : INFINITY;
  if (uneven < kEven) return true;
  if (use_clipped()) return true;
  g.face = on_plane;
  return uneven <= p[1].flatness() && agreement == kOn;
}

// The same before MuJoCo 4.0: measured along the normal of the face of geom 0, but shifted along
// the polygon's own.                                                                     (CON-12)
bool identify_manifold(const Polytope p[2], int f0, int f1, double agreement, ContactGeometry& g) {
  Vec3 x = g.position + (g.distance / 2) * g.normal, outward = p[0].face_normal(f0);
  FaceContact& c = g.face;
  c = {0,
       outward,
       x,
       0,
       height_over(p[0], f0, x),
       FaceContact::kFixed,
       p[1].geom(),
       {},
       {},
       {},
       {},
       {},
       g.normal,
       true};
  g.kind = ContactGeometry::kFace;
  if (std::abs(c.distance - g.distance) > agreement) return false;
  BoundaryPoint y;
  ClippedVertex v;
  auto use_clipped = [&] {
    if (!find_clipped(p, f0, f1, x, {0, 0, 0}, g.position, v)) return false;
    c.slide = FaceContact::kClipped;
    std::copy(v.motion, v.motion + 6, g.clipped);
    return true;
  };
  Vec3 sides[2];
  const int sides_here = p[0].sides_through(f0, x, sides, c.corner);
  if (on_boundary(p[1], f1, x, {0, 0, 0}, y)) {
    // a vertex has no side of the other face through it, and an edge has one, unless features tie
    const bool vertex = dot(y.along, y.along) == 0;
    if (sides_here > (vertex ? 0 : 1) && use_clipped()) return true;
    if (vertex) return true;
    c.slide = FaceContact::kEdge;
    c.along = y.along;
    if (p[0].crossed_side(f0, x, y.along, c.side)) return true;
  }
  const double uneven = sides_here == 2 ? unevenness(p[1], f1, g.normal, x) : INFINITY;
  if (uneven >= kEven && use_clipped()) return true;
  c.slide = FaceContact::kCorner;
  c.side = g.normal;
  return uneven <= p[1].flatness();
}

bool identify_edge_edge(const Feature feature[2], ContactGeometry& g) {
  g.kind = ContactGeometry::kEdges;
  EdgeContact& e = g.edges;
  for (int s = 0; s < 2; s++) {
    e.point[s] = g.position + ((s ? 0.5 : -0.5) * g.distance) * g.normal;
    e.axis[s] = feature[s].along();
    Vec3 gap = e.point[s] - feature[s].point[0];
    gap = gap - dot(gap, e.axis[s]) * e.axis[s];
    if (norm(gap) > seen(g)) return false;
  }
  Vec3 product = cross(e.axis[0], e.axis[1]);
  e.sign = dot(product, g.normal) > 0 ? 1 : -1;
  return norm(product) > kOn;
}

// Apart: a vertex or an edge of each, nearest to one another, found at the witness points x.
bool identify_apart(const Polytope p[2], const Vec3 x[2], ContactGeometry& g) {
  g.kind = ContactGeometry::kCenters;
  g.centers = {};
  int edges = 0;
  for (int s = 0; s < 2; s++) {
    g.centers.center[s] = x[s];
    const Vec3 outward = s ? -g.normal : g.normal;
    if (p[s].is_vertex(x[s], outward)) continue;
    if (!p[s].edge_through(x[s], outward, g.centers.axis[s])) return false;
    g.centers.slide[s] = CenterContact::kLine;
    edges++;
  }
  return edges < 2 || norm(cross(g.centers.axis[0], g.centers.axis[1])) > kOn;
}

// Parallel features: three pairs of their vertices, two where these lie along a line. Which ones
// MuJoCo took shows in the points only.
bool identify_parallel(const Polytope p[2], ContactGeometry& g) {
  int id[2][Core::kRoom], count[2];
  for (int s = 0; s < 2; s++) {
    count[s] = p[s].support(s ? -g.normal : g.normal, id[s], Core::kRoom);
  }
  Vec3 vertices[Core::kRoom];
  Core core{nullptr, count[1], {}, 0};
  for (int k = 0; k < count[0]; k++) vertices[k] = p[0].vertex(id[0][k]);
  for (int k = 0; k < count[1]; k++) core.points[k] = p[1].vertex(id[1][k]);
  // tie: nearest features
  return identify_simplex(vertices, count[0], core, {3, kOn, kOn, true}, g) ||
         identify_simplex(vertices, count[0], core, {2, kOn, kOn, true}, g);
}

}  // namespace

bool identify_edge_on_face(const Polytope p[2], int owner, ContactGeometry& g) {
  const Polytope &ref = p[owner], &other = p[1 - owner];
  Vec3 outward = owner == 0 ? g.normal : -g.normal;
  Vec3 x = g.position + (g.distance / 2) * outward, along;
  // rounding may leave an end just outside its edge
  const bool vertex = other.is_vertex(x, -outward);
  if (!vertex && !other.edge_through(x, -outward, along)) return false;
  return ref.find_face_with(outward, [&](int f) {
    g.kind = ContactGeometry::kFace;
    g.face =
        face_contact(owner, outward, ref.clip_vertex(f, 0), x, 0, other.geom(), ref.flatness(), g);
    if (std::abs(g.face.distance - g.distance) > kOn) return false;
    if (vertex) return true;
    g.face.slide = FaceContact::kEdge;
    g.face.along = along;
    return ref.crossed_side(f, x, along, g.face.side);
  });
}

bool identify_aligned(const Polytope p[2], ContactGeometry& g) {
  const bool projected = engine().version >= 4000000;
  auto identify = [&](double agreement) {
    return p[1].find_face_with(-g.normal, [&](int second) {
      return p[0].find_face(g.normal, kAligned, [&](int first) {
        return projected ? identify_projected(p, first, second, agreement, g)
                         : identify_manifold(p, first, second, agreement, g);
      });
    });
  };
  return identify(kRepeated) || identify(kOn);
}

bool identify_convex(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& g) {
  const Polytope p[2] = {{m, d, contact.geom.v[0], &g.walked[0]},
                         {m, d, contact.geom.v[1], &g.walked[1]}};
  const Vec3 x[2] = {g.position - (g.distance / 2) * g.normal,
                     g.position + (g.distance / 2) * g.normal};
  // aligned faces come before edges on faces, as in the collider: where they are nearly parallel
  // the points are the same but move differently
  if (identify_aligned(p, g)) return true;
  const Feature feature[2] = {p[0].facing(g.normal), p[1].facing(-g.normal)};
  for (int owner = 1; owner >= 0; owner--) {
    if (feature[owner].size == 3 && identify_vertex(p, owner, feature[owner], x[1 - owner], g)) {
      return true;
    }
    if (identify_edge_on_face(p, owner, g)) return true;
  }
  if (feature[0].size == 2 && feature[1].size == 2 && identify_edge_edge(feature, g)) return true;
  return g.distance > 0 && identify_apart(p, x, g);
}

bool identify_nearest_convex(const ModelView& m, const DataView& d, const ContactView& contact,
                             ContactGeometry& g) {
  const Polytope p[2] = {{m, d, contact.geom.v[0]}, {m, d, contact.geom.v[1]}};
  const Vec3 x[2] = {g.position - (g.distance / 2) * g.normal,
                     g.position + (g.distance / 2) * g.normal};
  const Feature feature[2] = {p[0].facing(g.normal), p[1].facing(-g.normal)};
  for (int owner = 1; owner >= 0; owner--) {
    const bool face = feature[owner].size == 3;
    if (face && identify_vertex(p, owner, feature[owner], x[1 - owner], g)) return true;
  }
  if (feature[0].size < 3 && feature[1].size < 3) {
    if (feature[0].size + feature[1].size == 4 && identify_edge_edge(feature, g)) return true;
    if (g.distance > 0 && identify_apart(p, x, g)) return true;
  }
  return identify_parallel(p, g);
}

}  // namespace mujacobian

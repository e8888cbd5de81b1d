// Pairs of boxes and meshes that MuJoCo's convex collider handles: vertices on faces, crossing
// edges, and the clipped points of manifolds.
#include "contact/convex_pair.h"

#include <algorithm>
#include <cmath>

#include "contact/agreement.h"
#include "contact/clipped_polygon.h"
#include "contact/kinematics.h"
#include "contact/pair_table.h"
#include "contact/vertex_pairs.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // distance within which a point is on a feature

// Error of the collider's points along geoms that are apart, within a margin. Their distance and
// normal are exact up to rounding.
constexpr double kApartError = 3e-8;

double point_error(const ContactGeometry& g) { return g.distance > 0 ? kApartError : kOn; }

// How well the same arithmetic reproduces MuJoCo's distances. Around a vertex there are many faces,
// and clipping by the wrong one may differ by less than kOn.
constexpr double kRepeated = 1e-13;

// Distance of vertices from a plane up to which a face counts as flat.
constexpr double kEven = 1e-12;

// Cosine above which opposed faces are clipped against one another (mjFACE_TOL).
constexpr double kAligned = 0.996;

// The vertex x of a polytope over a face of geom `owner`.
bool identify_vertex(const Polytope p[2], int owner, const PolytopePart& face, Vec3 x,
                     ContactGeometry& g) {
  const Polytope &ref = p[owner], &other = p[1 - owner];
  Vec3 outward = owner == 0 ? g.normal : -g.normal;
  const FaceFeature f =
      sphere_over_face(owner, outward, face.point[0], x, 0, ref.flatness(), g.distance);
  g.feature = f;
  // tie: nearest point of a face
  return std::abs(f.distance - g.distance) < kOn && other.is_vertex(x, -outward, point_error(g));
}

// A point of the boundary of a face.
struct BoundaryPoint {
  Vec3 point;
  Vec3 along;  // direction of the edge, zero at a vertex
};

// Finds the vertex or edge of a face that x is on, in projection along `ray` (zero: no projection).
bool on_boundary(const Polytope& p, int face, Vec3 x, Vec3 ray, BoundaryPoint& found) {
  // search in the frame of the geom, because its vertices are known there
  const int size = p.face_size(face);
  const Vec3 local_x = p.geom().to_local(x), local_ray = transpose_mul(p.geom().frame, ray);
  auto from = [&](int k) { return across(local_x - p.local_face_vertex(face, k), local_ray); };
  auto is_nil = [&](Vec3 v) { return dot(v, v) < kOn * kOn; };
  int edge = -1;  // by its end
  Vec3 from_a = from(size - 1);
  for (int k = 0; k < size; k++) {
    const Vec3 from_b = from(k);
    if (is_nil(from_b)) {
      found = {p.face_vertex(face, k), {0, 0, 0}};
      return true;
    }
    const Vec3 ab = from_a - from_b;
    const double along = dot(ab, from_a), length = dot(ab, ab);
    if (edge < 0 && along >= 0 && along <= length && length > 0) {
      if (is_nil(from_a - (along / length) * ab)) edge = k;
    }
    from_a = from_b;
  }
  if (edge < 0) return false;

  // the point of the edge
  const Vec3 a = p.face_vertex(face, edge ? edge - 1 : size - 1), b = p.face_vertex(face, edge);
  const Vec3 start = across(x - a, ray), ab = start - across(x - b, ray);
  const double t = dot(ab, start) / dot(ab, ab);
  found = {a + t * (b - a), (1 / norm(b - a)) * (b - a)};
  return true;
}

// Height of x over a face. Like MuJoCo, it is measured from the vertex with which clipping begins.
double height_over(const Polytope& p, int face, Vec3 x) {
  return dot(p.face_normal(face), x - p.clip_vertex(face, 0));
}

// Largest distance of the vertices of a face from the plane through x.
double unevenness(const Polytope& p, int face, Vec3 normal, Vec3 x) {
  double most = 0;
  for (int k = 0, size = p.face_size(face); k < size; k++) {
    most = std::fmax(most, std::abs(dot(normal, p.face_vertex(face, k) - x)));
  }
  return most;
}

// A point of the manifold of two faces that are nearly aligned: MuJoCo clips the polygon of geom 1
// by the sides of the face of geom 0, and projects it onto this face. (CON-13)
bool find_projected(const Polytope p[2], int f0, int f1, double agreement, const ContactGeometry& g,
                    FaceFeature& f) {
  Vec3 x = g.position - (g.distance / 2) * g.normal, base = p[0].face_normal(f0);
  if (std::abs(height_over(p[0], f0, x)) > kOn) return false;
  f = {.owner = 1, .outward = -g.normal, .center = x, .distance = g.distance};
  BoundaryPoint y;
  auto use_clipped = [&] {
    ClippedVertex v;
    if (!find_clipped(p, f0, f1, x, base, g.position, v)) return false;
    ClippedFoot foot{.above = v.point, .base = base, .face = {f0, f1}};
    std::copy(v.motion, v.motion + 6, foot.motion);
    f.slide = foot;
    f.distance = dot(g.normal, v.point - x);
    return std::abs(f.distance - g.distance) < agreement;
  };

  // a vertex or an edge of the polygon
  if (on_boundary(p[1], f1, x, base, y)) {
    // no side of the other face goes through a vertex, and one through an edge, unless features tie
    const bool vertex = dot(y.along, y.along) == 0;
    Vec3 sides[2], corner;
    if (p[0].sides_through(f0, x, sides, corner) > (vertex ? 0 : 1) && use_clipped()) return true;
    FootPoint foot{.above = y.point, .base = base, .along = y.along};
    f.distance = dot(g.normal, y.point - x);
    const bool crosses = vertex || p[0].crossed_side(f0, x, y.along, foot.side);
    f.slide = foot;
    if (crosses) return true;
  }

  // a corner of the face of geom 0 under the polygon, which in meshes is flat only to single
  // precision: a plane serves if the clipping cannot be repeated
  f.slide = FixedPoint{};
  const FaceFeature on_plane = f;
  Vec3 above = x + (g.distance / dot(g.normal, base)) * base;
  const bool at_corner = on_boundary(p[0], f0, x, base, y) && dot(y.along, y.along) == 0;
  const double uneven = at_corner ? unevenness(p[1], f1, g.normal, above) : INFINITY;
  if (uneven < kEven) return true;
  if (use_clipped()) return true;
  f = on_plane;
  return uneven <= p[1].flatness() && agreement == kOn;
}

// The same before MuJoCo 3.17: the distance is measured along the normal of the face of geom 0, but
// the position is shifted along the normal of the polygon. (CON-12)
bool find_shifted(const Polytope p[2], int f0, int f1, double agreement, const ContactGeometry& g,
                  FaceFeature& f) {
  Vec3 x = g.position + (g.distance / 2) * g.normal;
  f = {.owner = 0,
       .outward = p[0].face_normal(f0),
       .center = x,
       .distance = height_over(p[0], f0, x),
       .shift = g.normal,
       .shift_with_other = true};
  if (std::abs(f.distance - g.distance) > agreement) return false;
  BoundaryPoint y;
  auto use_clipped = [&] {
    ClippedVertex v;
    if (!find_clipped(p, f0, f1, x, {0, 0, 0}, g.position, v)) return false;
    ClippedPoint point{.face = {f0, f1}};
    std::copy(v.motion, v.motion + 6, point.motion);
    f.slide = point;
    return true;
  };

  // a vertex or an edge of the polygon
  Vec3 sides[2], corner{};
  const int sides_here = p[0].sides_through(f0, x, sides, corner);
  if (on_boundary(p[1], f1, x, {0, 0, 0}, y)) {
    // no side of the other face goes through a vertex, and one through an edge, unless features tie
    const bool vertex = dot(y.along, y.along) == 0;
    if (sides_here > (vertex ? 0 : 1) && use_clipped()) return true;
    if (vertex) return true;
    EdgeCrossing edge{.along = y.along};
    if (p[0].crossed_side(f0, x, y.along, edge.side)) {
      f.slide = edge;
      return true;
    }
  }

  // a point of the polygon over a corner of the face
  const double uneven = sides_here == 2 ? unevenness(p[1], f1, g.normal, x) : INFINITY;
  if (uneven >= kEven && use_clipped()) return true;
  f.slide = CornerPoint{.corner = corner, .face = g.normal};
  return uneven <= p[1].flatness();
}

// Two edges that cross.
bool identify_edge_edge(const PolytopePart part[2], ContactGeometry& g) {
  EdgeFeature e;
  for (int s = 0; s < 2; s++) {
    e.point[s] = g.position + ((s ? 0.5 : -0.5) * g.distance) * g.normal;
    e.axis[s] = part[s].along();
    Vec3 gap = e.point[s] - part[s].point[0];
    gap = gap - dot(gap, e.axis[s]) * e.axis[s];
    if (norm(gap) > point_error(g)) return false;
  }
  Vec3 product = cross(e.axis[0], e.axis[1]);
  e.sign = dot(product, g.normal) > 0 ? 1 : -1;
  g.feature = e;
  return norm(product) > kOn;
}

// Geoms that are apart: a vertex or an edge of each at the witness points x.
bool identify_apart(const Polytope p[2], const Vec3 x[2], ContactGeometry& g) {
  CenterFeature f;
  int edges = 0;
  for (int s = 0; s < 2; s++) {
    f.pair.center[s] = x[s];
    const Vec3 outward = s ? -g.normal : g.normal;
    if (p[s].is_vertex(x[s], outward)) continue;
    if (!p[s].edge_through(x[s], outward, f.pair.axis[s])) return false;
    f.pair.slide[s] = CenterPair::kLine;
    edges++;
  }
  g.feature = f;
  return edges < 2 || norm(cross(f.pair.axis[0], f.pair.axis[1])) > kOn;
}

// Parallel features: three pairs of their vertices, or two if the vertices lie along a line. Only
// the points show which ones MuJoCo took.
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

// The point x of a line along the face of geom `owner`. It is fixed to the line if `along` is zero.
// Otherwise a side of the face cuts the line there.                                        (CON-10)
bool find_line_on_face(const Polytope& ref, int owner, Vec3 x, Vec3 along, ContactGeometry& g) {
  const Vec3 outward = owner == 0 ? g.normal : -g.normal;
  const bool fixed = dot(along, along) == 0;
  return ref.find_face_with(outward, [&](int face) {
    FaceFeature f = sphere_over_face(owner, outward, ref.clip_vertex(face, 0), x, 0, ref.flatness(),
                                     g.distance);
    if (std::abs(f.distance - g.distance) > kOn) return false;
    EdgeCrossing edge{.along = along};
    if (!fixed && !ref.crossed_side(face, x, along, edge.side)) return false;
    if (!fixed) f.slide = edge;
    g.feature = f;
    return true;
  });
}

// A line between two vertices of a polytope along a face of the other one, where a side of the face
// cuts it. MuJoCo takes the line from the last simplex of the collider, and it need not be an edge.
bool identify_chord_on_face(const Polytope p[2], const Vec3 x[2], ContactGeometry& g) {
  for (int owner = 1; owner >= 0; owner--) {
    Vec3 along;
    if (p[1 - owner].chord_through(x[1 - owner], along) &&
        find_line_on_face(p[owner], owner, x[1 - owner], along, g)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool identify_edge_on_face(const Polytope p[2], int owner, ContactGeometry& g) {
  const Polytope& other = p[1 - owner];
  const Vec3 outward = owner == 0 ? g.normal : -g.normal;
  const Vec3 x = g.position + (g.distance / 2) * outward;
  Vec3 along{};
  // rounding may leave an end just outside its edge
  if (!other.is_vertex(x, -outward) && !other.edge_through(x, -outward, along)) return false;
  return find_line_on_face(p[owner], owner, x, along, g);
}

bool identify_aligned(const Polytope p[2], ContactGeometry& g) {
  const bool projected = engine().version >= kMuJoCo317;
  FaceFeature f;
  auto identify = [&](double agreement) {
    return p[1].find_face_with(-g.normal, [&](int second) {
      return p[0].find_face(g.normal, kAligned, [&](int first) {
        return projected ? find_projected(p, first, second, agreement, g, f)
                         : find_shifted(p, first, second, agreement, g, f);
      });
    });
  };
  if (!identify(kRepeated) && !identify(kOn)) return false;
  g.feature = f;
  return true;
}

bool identify_convex(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& g) {
  const Polytope p[2] = {{m, d, contact.geom.v[0], &g.walked[0]},
                         {m, d, contact.geom.v[1], &g.walked[1]}};
  const Vec3 x[2] = {g.position - (g.distance / 2) * g.normal,
                     g.position + (g.distance / 2) * g.normal};
  // aligned faces come before edges on faces, as in the collider: for faces that are nearly
  // parallel, the points are the same but move differently
  if (identify_aligned(p, g)) return true;
  const PolytopePart part[2] = {p[0].facing(g.normal), p[1].facing(-g.normal)};
  for (int owner = 1; owner >= 0; owner--) {
    if (part[owner].size == 3 && identify_vertex(p, owner, part[owner], x[1 - owner], g)) {
      return true;
    }
    if (identify_edge_on_face(p, owner, g)) return true;
  }
  if (part[0].size == 2 && part[1].size == 2 && identify_edge_edge(part, g)) return true;
  if (g.distance > 0) return identify_apart(p, x, g);
  // rare, and it takes long to find
  if (g.walked[0] != Polytope::kEverywhere) return false;
  if (identify_chord_on_face(p, x, g) || identify_facet(p, g)) return true;
  const double margin = detection(m, contact);
  return margin > 0 && identify_rounded(p, rounded_agreement(m, margin), g);
}

bool identify_nearest_convex(const ModelView& m, const DataView& d, const ContactView& contact,
                             ContactGeometry& g) {
  const Polytope p[2] = {{m, d, contact.geom.v[0]}, {m, d, contact.geom.v[1]}};
  const Vec3 x[2] = {g.position - (g.distance / 2) * g.normal,
                     g.position + (g.distance / 2) * g.normal};
  const PolytopePart part[2] = {p[0].facing(g.normal), p[1].facing(-g.normal)};
  for (int owner = 1; owner >= 0; owner--) {
    const bool face = part[owner].size == 3;
    if (face && identify_vertex(p, owner, part[owner], x[1 - owner], g)) return true;
  }
  if (part[0].size < 3 && part[1].size < 3) {
    if (part[0].size + part[1].size == 4 && identify_edge_edge(part, g)) return true;
    if (g.distance > 0 && identify_apart(p, x, g)) return true;
  }
  return identify_parallel(p, g);
}

}  // namespace mujacobian

// Pairs of a sphere or capsule with a mesh: a sphere at the point of the segment that is nearest to
// the mesh.
#include <algorithm>
#include <cmath>

#include "contact/pair_table.h"
#include "contact/polytope.h"
#include "contact/segment_on_face.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;        // distance within which a point is on a vertex or edge
constexpr double kExactly = 1e-12;  // the same up to rounding

// Cosine of the normals of faces whose boundaries are searched.
constexpr double kAround = 0.9999;

// Returns the vertex or edge of a face around `outward` that p is on up to rounding; size 0: none.
PolytopePart boundary_at(const Polytope& mesh, Vec3 p, Vec3 outward) {
  PolytopePart found{};
  mesh.find_face(outward, kAround, [&](int f) {
    const int size = mesh.face_size(f);
    Vec3 a = mesh.face_vertex(f, size - 1);
    for (int k = 0; k < size; k++) {
      const Vec3 b = mesh.face_vertex(f, k), edge = b - a;
      if (norm(p - b) < kExactly) {
        found = {1, {b, {}, {}}};
        return true;
      }
      const double t = dot(p - a, edge), length = norm(edge);
      if (t > 0 && t < length * length && norm(cross(p - a, edge)) < kExactly * length) {
        found = {2, {a, b, {}}};
      }
      a = b;
    }
    return false;
  });
  return found;
}

// Returns the vertex, edge or face of the mesh that faces a round geom. Meshes are flat only to
// single precision, so that all vertices of a face can be equally near. Outside the mesh, MuJoCo's
// witness point shows which vertex or edge it is.
PolytopePart facing_part(const Polytope& mesh, double radius, const ContactGeometry& g) {
  const PolytopePart part = mesh.facing(-g.normal);
  if (part.size == 1 || g.distance + radius <= 0) return part;
  const PolytopePart exact = boundary_at(mesh, g.position + (g.distance / 2) * g.normal, -g.normal);
  // tie: sphere over an edge of a mesh
  return exact.size > 0 ? exact : part;
}

// A sphere of the first geom against the mesh. Its center is fixed, or slides along a line.
bool identify_round(const Geom& geom, Vec3 center, bool slides, const Polytope& mesh,
                    ContactGeometry& g) {
  const PolytopePart part = facing_part(mesh, geom.size[0], g);
  if (part.size == 3) {
    g.feature = sphere_over_face(1, -g.normal, part.point[0], center, geom.size[0], mesh.flatness(),
                                 g.distance);
    return !slides;
  }
  CenterFeature f{.radius = {geom.size[0], 0}};
  CenterPair& c = f.pair;
  c.center[0] = center;
  c.center[1] = g.position + (g.distance / 2) * g.normal;
  if (slides) {
    c.slide[0] = CenterPair::kLine;
    c.axis[0] = geom.axis();
  }
  if (part.size == 2) {
    c.slide[1] = CenterPair::kLine;
    c.axis[1] = part.along();
  }
  g.feature = f;
  const Vec3 gap = c.center[1] - part.point[0];
  return norm(part.size == 2 ? cross(gap, c.axis[1]) : gap) < kOn;
}

}  // namespace

bool identify_round_mesh(const ModelView& m, const DataView& d, const ContactView& contact,
                         ContactGeometry& g) {
  return identify_segment_on_face(m, d, contact, g) || identify_nearest_round(m, d, contact, g);
}

bool identify_nearest_round(const ModelView& m, const DataView& d, const ContactView& contact,
                            ContactGeometry& g) {
  const Geom geom = load_geom(m, d, contact.geom.v[0]);
  const Polytope mesh(m, d, contact.geom.v[1], &g.walked[1]);
  if (geom.type == geom::kSphere) return identify_round(geom, geom.position, false, mesh, g);
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

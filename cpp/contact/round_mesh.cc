// Spheres and capsules against meshes: a sphere at the point of the segment nearest to the mesh.
#include <algorithm>
#include <cmath>

#include "contact/polytope.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;
constexpr double kExactly = 1e-12;  // distance at which a witness point is on a vertex or edge

// Cosine of the normals of faces among which a point of the boundary is looked for.
constexpr double kAround = 0.9999;

// The vertex or edge of a face around `outward` that p is on up to rounding, of size 0 if none.
Feature boundary_at(const Polytope& mesh, Vec3 p, Vec3 outward) {
  Feature found{};
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

// The feature of the mesh that faces a round geom. Meshes are flat to single precision only, so
// that all vertices of a face may seem to be as near; outside the mesh, MuJoCo's witness point
// shows which vertex or edge it is.
Feature facing_feature(const Polytope& mesh, double radius, const ContactGeometry& g) {
  const Feature feature = mesh.facing(-g.normal);
  if (feature.size == 1 || g.distance + radius <= 0) return feature;
  const Feature exact = boundary_at(mesh, g.position + (g.distance / 2) * g.normal, -g.normal);
  // tie: sphere over an edge of a mesh
  return exact.size > 0 ? exact : feature;
}

// A sphere of the first geom, its center fixed or on a line, against a feature of a mesh.
bool identify_round(const Geom& geom, Vec3 center, bool slides, const Polytope& mesh,
                    ContactGeometry& g) {
  const Feature feature = facing_feature(mesh, geom.size[0], g);
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

}  // namespace

bool identify_mesh_round(const ModelView& m, const DataView& d, const ContactView& contact,
                         ContactGeometry& g) {
  return identify_along(m, d, contact, g) || identify_nearest_round(m, d, contact, g);
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

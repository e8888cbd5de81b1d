// Spheres and capsules against meshes: a sphere at the point of the segment nearest to the mesh.
#include <algorithm>
#include <cmath>

#include "contact/polytope.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;

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

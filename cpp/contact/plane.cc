// Planes against sphere, capsule, box and mesh: the plane is a face, the other geom touches it with
// a point of its own.
#include <cmath>

#include "contact/geometry.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// A vertex of the geom's mesh at the world point p.
bool is_vertex(const ModelView& m, int geom_id, const Geom& mesh, Vec3 p) {
  int data = m.geom_dataid[geom_id];
  if (data < 0) return false;
  Vec3 local = mesh.to_local(p);
  const float* vertex = m.mesh_vert + 3 * m.mesh_vertadr[data];
  for (int k = 0; k < m.mesh_vertnum[data]; k++, vertex += 3) {
    Vec3 gap = {vertex[0] - local.x, vertex[1] - local.y, vertex[2] - local.z};
    if (dot(gap, gap) < 1e-18) return true;
  }
  return false;
}

bool is_corner(const Geom& box, Vec3 p) {
  Vec3 local = box.to_local(p);
  return std::abs(std::abs(local.x) - box.size[0]) < 1e-9 &&
         std::abs(std::abs(local.y) - box.size[1]) < 1e-9 &&
         std::abs(std::abs(local.z) - box.size[2]) < 1e-9;
}

}  // namespace

bool identify_plane(const ModelView& m, const DataView& d, const ContactView& contact,
                    ContactGeometry& g) {
  const Geom plane = load_geom(m, d, contact.geom.v[0]), other = load_geom(m, d, contact.geom.v[1]);
  g.kind = ContactGeometry::kFace;
  g.face = {0, plane.axis(), {}, 0, 0};
  // the other geom's point nearest to or deepest in the plane
  Vec3 touch = g.position + (g.distance / 2) * g.normal;
  switch (other.type) {
    case geom::kSphere:
      g.face.center = other.position;
      g.face.radius = other.size[0];
      break;
    case geom::kCapsule: {
      Vec3 sphere = touch + other.size[0] * plane.axis();
      Vec3 half = other.size[1] * other.axis();
      g.face.center = other.position + (dot(sphere - other.position, half) > 0 ? half : -half);
      g.face.radius = other.size[0];
      g.hint_owner = 1;
      break;
    }
    case geom::kBox:
      if (!is_corner(other, touch)) return false;
      g.face.center = touch;
      break;
    case geom::kMesh:
      if (!is_vertex(m, contact.geom.v[1], other, touch)) return false;
      g.face.center = touch;
      break;
    default:
      return false;
  }
  g.face.distance = dot(plane.axis(), g.face.center - plane.position) - g.face.radius;
  return true;
}

}  // namespace mujacobian

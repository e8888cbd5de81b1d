// Pairs of a plane: the plane is a face, and the other geom touches it with a point.
#include <cmath>

#include "contact/pair_table.h"
#include "contact/polytope.h"
#include "contact/standing_cylinder.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// Whether p is a corner of the box.
bool is_corner(const Geom& box, Vec3 p) {
  Vec3 local = box.to_local(p);
  // tie: corner of a box
  return std::abs(std::abs(local.x) - box.size[0]) < 1e-9 &&
         std::abs(std::abs(local.y) - box.size[1]) < 1e-9 &&
         std::abs(std::abs(local.z) - box.size[2]) < 1e-9;
}

// The point of an ellipsoid that is lowest along n.                                       (CON-7)
Vec3 lowest(const Geom& ellipsoid, Vec3 n) {
  const double* s = ellipsoid.size;
  Vec3 local = transpose_mul(ellipsoid.frame, n);
  Vec3 scaled = {s[0] * local.x, s[1] * local.y, s[2] * local.z};
  double length = norm(scaled);
  return ellipsoid.to_world(
      {-s[0] * scaled.x / length, -s[1] * scaled.y / length, -s[2] * scaled.z / length});
}

}  // namespace

bool identify_plane(const ModelView& m, const DataView& d, const ContactView& contact,
                    ContactGeometry& g) {
  const Geom plane = load_geom(m, d, contact.geom.v[0]), other = load_geom(m, d, contact.geom.v[1]);
  FaceFeature& face = g.feature.emplace<FaceFeature>();
  face.outward = face.shift = plane.axis();
  // the point of the other geom that is nearest to the plane, or deepest in it
  Vec3 touch = g.position + (g.distance / 2) * g.normal;
  switch (other.type) {
    case geom::kSphere:
      face.center = other.position;
      face.radius = other.size[0];
      break;
    case geom::kCapsule: {
      Vec3 sphere = touch + other.size[0] * plane.axis();
      Vec3 half = other.size[1] * other.axis();
      // tie: lower end of a capsule
      face.center = other.position + (dot(sphere - other.position, half) > 0 ? half : -half);
      face.radius = other.size[0];
      g.hint_owner = 1;
      break;
    }
    case geom::kBox:
      if (!is_corner(other, touch)) return false;
      face.center = touch;
      break;
    case geom::kMesh:
    case geom::kSdf:  // MuJoCo uses its mesh here
      if (!Polytope(m, d, contact.geom.v[1], &g.walked[1]).is_vertex(touch, -plane.axis())) {
        return false;
      }
      face.center = touch;
      break;
    case geom::kEllipsoid:
      face.slide = EllipsoidPoint{other};
      face.center = lowest(other, plane.axis());
      break;
    case geom::kCylinder:
      face.slide = CylinderPoint{other};
      if (!touching_point(other, plane.axis(), touch)) return false;
      face.center = touch;
      break;
    default:
      return false;
  }
  face.distance = dot(plane.axis(), face.center - plane.position) - face.radius;
  return true;
}

}  // namespace mujacobian

// Planes against everything they meet: the plane is a face, the other geom touches it with a point.
#include <cmath>

#include "contact/polytope.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

bool is_corner(const Geom& box, Vec3 p) {
  Vec3 local = box.to_local(p);
  // tie: corner of a box
  return std::abs(std::abs(local.x) - box.size[0]) < 1e-9 &&
         std::abs(std::abs(local.y) - box.size[1]) < 1e-9 &&
         std::abs(std::abs(local.z) - box.size[2]) < 1e-9;
}

// The point of an ellipsoid lowest along n
Vec3 lowest(const Geom& ellipsoid, Vec3 n) {
  const double* s = ellipsoid.size;
  Vec3 local = transpose_mul(ellipsoid.frame, n);
  Vec3 scaled = {s[0] * local.x, s[1] * local.y, s[2] * local.z};
  double length = norm(scaled);
  return ellipsoid.to_world(
      {-s[0] * scaled.x / length, -s[1] * scaled.y / length, -s[2] * scaled.z / length});
}

// p is one of the four points at which MuJoCo lets a cylinder touch a plane: both ends of the
// lowest line, and two more on the lower rim that make an equilateral triangle with it.
bool on_cylinder(const Geom& cylinder, Vec3 n, Vec3 p) {
  Vec3 local = transpose_mul(cylinder.frame, n);
  double flat = std::sqrt(local.x * local.x + local.y * local.y);
  double radius = cylinder.size[0], height = cylinder.size[1];
  // tie: upright cylinder
  Vec3 e = flat < 1e-15 ? Vec3{1, 0, 0} : Vec3{-local.x / flat, -local.y / flat, 0};
  Vec3 f = {-e.y, e.x, 0};
  Vec3 q = cylinder.to_local(p);
  // tie: lower cap of a cylinder
  double lower = local.z > 0 ? -height : height;
  // nearly upright, rounding of the frame turns the lowest line
  double slack = 1e-9 + (flat < 1e-15 ? 0 : radius * 1e-14 / flat);
  auto is = [&](double along, double across, double z) {
    Vec3 gap = radius * (along * e + across * f) + Vec3{0, 0, z} - q;
    return dot(gap, gap) < slack * slack;
  };
  const double side = std::sqrt(3.0) / 2;
  return is(1, 0, lower) || is(1, 0, -lower) || is(-0.5, side, lower) || is(-0.5, -side, lower);
}

}  // namespace

bool identify_plane(const ModelView& m, const DataView& d, const ContactView& contact,
                    ContactGeometry& g) {
  const Geom plane = load_geom(m, d, contact.geom.v[0]), other = load_geom(m, d, contact.geom.v[1]);
  g.kind = ContactGeometry::kFace;
  g.face = {0,  plane.axis(), {}, 0,  0,  FaceContact::kFixed, other,
            {}, {},           {}, {}, {}, plane.axis(),        false};
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
      // tie: lower end of a capsule
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
      if (!Polytope(m, d, contact.geom.v[1], &g.walked[1]).is_vertex(touch, -plane.axis())) {
        return false;
      }
      g.face.center = touch;
      break;
    case geom::kEllipsoid:
      g.face.slide = FaceContact::kEllipsoid;
      g.face.center = lowest(other, plane.axis());
      break;
    case geom::kCylinder:
      g.face.slide = FaceContact::kCylinder;
      if (!on_cylinder(other, plane.axis(), touch)) return false;
      g.face.center = touch;
      break;
    default:
      return false;
  }
  g.face.distance = dot(plane.axis(), g.face.center - plane.position) - g.face.radius;
  return true;
}

}  // namespace mujacobian

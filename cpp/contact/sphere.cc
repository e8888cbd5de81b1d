// Spheres against sphere, capsule, cylinder and box.
#include <algorithm>
#include <cmath>

#include "contact/geometry.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

void against_point(const Geom& sphere, Vec3 point, double radius, ContactGeometry& g) {
  g.kind = ContactGeometry::kCenters;
  g.centers = {};
  g.centers.center[0] = sphere.position, g.centers.center[1] = point;
  g.centers.radius[0] = sphere.size[0], g.centers.radius[1] = radius;
}

// `height`: of the sphere's center above the face
void against_face(const Geom& sphere, Vec3 outward, double height, ContactGeometry& g) {
  g.kind = ContactGeometry::kFace;
  g.face = {1,
            outward,
            sphere.position,
            sphere.size[0],
            height - sphere.size[0],
            FaceContact::kFixed,
            sphere,
            {},
            {},
            {},
            {},
            {},
            outward,
            false};
}

void against_capsule(const Geom& sphere, const Geom& capsule, ContactGeometry& g) {
  double x = dot(capsule.axis(), sphere.position - capsule.position);
  double clipped = std::clamp(x, -capsule.size[1], capsule.size[1]);
  against_point(sphere, capsule.position + clipped * capsule.axis(), capsule.size[0], g);
  g.region = std::abs(std::abs(x) - capsule.size[1]);
  // tie: sphere at the end of a capsule
  if (clipped == x) {
    g.centers.slide[1] = CenterContact::kLine;
    g.centers.axis[1] = capsule.axis();
  }
}

void against_cylinder(const Geom& sphere, const Geom& cylinder, ContactGeometry& g) {
  double radius = cylinder.size[0], height = cylinder.size[1];
  Vec3 axis = cylinder.axis(), offset = sphere.position - cylinder.position;
  double x = dot(axis, offset);
  Vec3 lateral = offset - x * axis;
  double distance = norm(lateral);

  g.region = std::fmin(std::abs(std::abs(x) - height), std::abs(distance - radius));
  // inside both extents, the nearer of cap and side counts
  // tie: sphere at the rim of a cylinder
  bool side = std::abs(x) < height, cap = distance < radius;
  // tie: sphere in a cylinder
  if (side && cap) (height - std::abs(x) < radius - distance ? side : cap) = false;
  if (side) {
    against_point(sphere, cylinder.position + x * axis, radius, g);
    g.centers.slide[1] = CenterContact::kLine;
    g.centers.axis[1] = axis;
  } else if (cap) {
    // tie: cap of a cylinder
    against_face(sphere, x > 0 ? axis : -axis, std::abs(x) - height, g);
  } else {
    Vec3 middle = cylinder.position + (x > 0 ? height : -height) * axis;
    against_point(sphere, middle + (radius / distance) * lateral, 0, g);
    g.centers.slide[1] = CenterContact::kCircle;
    g.centers.axis[1] = axis;
    g.centers.middle[1] = middle;
  }
}

}  // namespace

void identify_sphere_box(const Geom& sphere, const Geom& box, ContactGeometry& g) {
  Vec3 local = box.to_local(sphere.position);
  double p[3] = {local.x, local.y, local.z}, nearest[3];
  int outside = 0, free_axis = 0, face_axis = 0;
  for (int k = 0; k < 3; k++) {
    nearest[k] = std::clamp(p[k], -box.size[k], box.size[k]);
    g.region = std::fmin(g.region, std::abs(std::abs(p[k]) - box.size[k]));
    // tie: sphere at the rim of a box
    if (nearest[k] != p[k]) {
      outside++, face_axis = k;
    } else {
      free_axis = k;
    }
  }
  if (outside == 0) {
    // center inside the box: out through the nearest face
    double least = box.size[0] - std::abs(p[0]);
    face_axis = 0;
    for (int k = 1; k < 3; k++) {
      double gap = box.size[k] - std::abs(p[k]);
      // tie: sphere in a box
      if (gap < least) least = gap, face_axis = k;
    }
  }
  if (outside <= 1) {
    Vec3 outward = column(box.frame, face_axis);
    double height = std::abs(p[face_axis]) - box.size[face_axis];
    // tie: face of a box
    against_face(sphere, p[face_axis] > 0 ? outward : -outward, height, g);
    return;
  }
  against_point(sphere, box.to_world({nearest[0], nearest[1], nearest[2]}), 0, g);
  if (outside == 2) {
    g.centers.slide[1] = CenterContact::kLine;
    g.centers.axis[1] = column(box.frame, free_axis);
  }
}

bool identify_sphere(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& g) {
  const Geom sphere = load_geom(m, d, contact.geom.v[0]),
             other = load_geom(m, d, contact.geom.v[1]);
  switch (other.type) {
    case geom::kSphere:
      against_point(sphere, other.position, other.size[0], g);
      return true;
    case geom::kCapsule:
      against_capsule(sphere, other, g);
      return true;
    case geom::kCylinder:
      against_cylinder(sphere, other, g);
      return true;
    case geom::kBox:
      identify_sphere_box(sphere, other, g);
      return true;
    case geom::kMesh:
      return identify_mesh_round(m, d, contact, g);
    default:
      return false;
  }
}

}  // namespace mujacobian

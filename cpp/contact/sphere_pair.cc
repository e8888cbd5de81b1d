// Pairs of a sphere with a sphere, capsule, cylinder or box.
#include "contact/sphere_pair.h"

#include <algorithm>
#include <cmath>

#include "contact/pair_table.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// Feature of two spheres, the given one and one around `point`.
CenterFeature against_point(const Geom& sphere, Vec3 point, double radius) {
  return {.pair = {.center = {sphere.position, point}}, .radius = {sphere.size[0], radius}};
}

// The same if the second center slides along a line.
CenterFeature against_line(const Geom& sphere, Vec3 point, Vec3 axis, double radius) {
  CenterFeature f = against_point(sphere, point, radius);
  f.pair.slide[1] = CenterPair::kLine;
  f.pair.axis[1] = axis;
  return f;
}

// Feature of a face of geom 1 at the given height under the center of the sphere.
FaceFeature against_face(const Geom& sphere, Vec3 outward, double height) {
  return {.owner = 1,
          .outward = outward,
          .center = sphere.position,
          .radius = sphere.size[0],
          .distance = height - sphere.size[0]};
}

void against_capsule(const Geom& sphere, const Geom& capsule, ContactGeometry& g) {
  double x = dot(capsule.axis(), sphere.position - capsule.position);
  double clipped = std::clamp(x, -capsule.size[1], capsule.size[1]);
  const Vec3 nearest = capsule.position + clipped * capsule.axis();
  g.region = std::abs(std::abs(x) - capsule.size[1]);
  // tie: sphere at the end of a capsule
  if (clipped == x) {
    g.feature = against_line(sphere, nearest, capsule.axis(), capsule.size[0]);
  } else {
    g.feature = against_point(sphere, nearest, capsule.size[0]);
  }
}

void against_cylinder(const Geom& sphere, const Geom& cylinder, ContactGeometry& g) {
  double radius = cylinder.size[0], height = cylinder.size[1];
  Vec3 axis = cylinder.axis(), offset = sphere.position - cylinder.position;
  double x = dot(axis, offset);
  Vec3 lateral = offset - x * axis;
  double distance = norm(lateral);

  g.region = std::fmin(std::abs(std::abs(x) - height), std::abs(distance - radius));
  // if the center is inside, the nearer of cap and side counts
  // tie: sphere at the rim of a cylinder
  bool side = std::abs(x) < height, cap = distance < radius;
  // tie: sphere in a cylinder
  if (side && cap) (height - std::abs(x) < radius - distance ? side : cap) = false;
  if (side) {
    g.feature = against_line(sphere, cylinder.position + x * axis, axis, radius);
  } else if (cap) {
    // tie: cap of a cylinder
    g.feature = against_face(sphere, x > 0 ? axis : -axis, std::abs(x) - height);
  } else {
    const Vec3 middle = cylinder.position + (x > 0 ? height : -height) * axis;
    CenterFeature rim = against_point(sphere, middle + (radius / distance) * lateral, 0);
    rim.pair.slide[1] = CenterPair::kCircle;
    rim.pair.axis[1] = axis;
    rim.pair.middle[1] = middle;
    g.feature = rim;
  }
}

}  // namespace

void find_sphere_on_box(const Geom& sphere, const Geom& box, ContactGeometry& g) {
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
    // the center is inside the box: the nearest face counts
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
    g.feature = against_face(sphere, p[face_axis] > 0 ? outward : -outward, height);
    return;
  }
  const Vec3 point = box.to_world({nearest[0], nearest[1], nearest[2]});
  if (outside == 2) {
    g.feature = against_line(sphere, point, column(box.frame, free_axis), 0);
  } else {
    g.feature = against_point(sphere, point, 0);
  }
}

bool identify_sphere(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& g) {
  const Geom sphere = load_geom(m, d, contact.geom.v[0]),
             other = load_geom(m, d, contact.geom.v[1]);
  switch (other.type) {
    case geom::kSphere:
      g.feature = against_point(sphere, other.position, other.size[0]);
      return true;
    case geom::kCapsule:
      against_capsule(sphere, other, g);
      return true;
    case geom::kCylinder:
      against_cylinder(sphere, other, g);
      return true;
    case geom::kBox:
      find_sphere_on_box(sphere, other, g);
      return true;
    default:
      return false;
  }
}

}  // namespace mujacobian

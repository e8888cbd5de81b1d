// Capsules against capsules: spheres at points of their segments.
#include <cmath>

#include "contact/geometry.h"
#include "layout/enums.h"

namespace mujacobian {
bool identify_capsule(const ModelView& m, const DataView& d, const ContactView& contact,
                      ContactGeometry& g) {
  const Geom capsule[2] = {load_geom(m, d, contact.geom.v[0]), load_geom(m, d, contact.geom.v[1])};
  if (capsule[1].type == geom::kBox) {
    return identify_capsule_box(capsule[0], capsule[1], g);
  }
  if (capsule[1].type == geom::kMesh) return identify_mesh_round(m, d, contact, g);
  if (capsule[1].type != geom::kCapsule) return false;

  // MuJoCo's witness points tell where on the two segments the contact is
  g.kind = ContactGeometry::kCenters;
  g.centers = {};
  for (int s = 0; s < 2; s++) {
    double sign = s == 0 ? -1 : 1, half = capsule[s].size[1];
    Vec3 witness = g.position + (sign * (g.distance / 2 + capsule[s].size[0])) * g.normal;
    double x = dot(witness - capsule[s].position, capsule[s].axis());
    // tie: end of a capsule
    bool inside = std::abs(x) < half * (1 - 1e-9);
    g.region = std::fmin(g.region, half - std::fmin(half, std::abs(x)));
    if (!inside) x = x > 0 ? half : -half;
    g.centers.center[s] = capsule[s].position + x * capsule[s].axis();
    g.centers.radius[s] = capsule[s].size[0];
    g.centers.axis[s] = capsule[s].axis();
    g.centers.slide[s] = inside ? CenterContact::kLine : CenterContact::kFixed;
  }

  // parallel capsules: MuJoCo pairs each end with the point next to it, so one of the two is fixed
  double b = dot(capsule[0].axis(), capsule[1].axis());
  bool both =
      g.centers.slide[0] == CenterContact::kLine && g.centers.slide[1] == CenterContact::kLine;
  // tie: parallel capsules
  return !(both && 1 - b * b < 1e-15);
}

}  // namespace mujacobian

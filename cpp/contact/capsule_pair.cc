// Pairs of capsules: spheres at points of their segments.
#include <cmath>

#include "contact/pair_table.h"
#include "layout/enums.h"

namespace mujacobian {

bool identify_capsules(const ModelView& m, const DataView& d, const ContactView& contact,
                       ContactGeometry& g) {
  const Geom capsule[2] = {load_geom(m, d, contact.geom.v[0]), load_geom(m, d, contact.geom.v[1])};
  // MuJoCo's witness points give the points of the two segments
  CenterFeature f;
  CenterPair& c = f.pair;
  for (int s = 0; s < 2; s++) {
    double sign = s == 0 ? -1 : 1, half = capsule[s].size[1];
    Vec3 witness = g.position + (sign * (g.distance / 2 + capsule[s].size[0])) * g.normal;
    double x = dot(witness - capsule[s].position, capsule[s].axis());
    // tie: end of a capsule
    bool inside = std::abs(x) < half * (1 - 1e-9);
    g.region = std::fmin(g.region, half - std::fmin(half, std::abs(x)));
    if (!inside) x = x > 0 ? half : -half;
    c.center[s] = capsule[s].position + x * capsule[s].axis();
    f.radius[s] = capsule[s].size[0];
    c.axis[s] = capsule[s].axis();
    c.slide[s] = inside ? CenterPair::kLine : CenterPair::kFixed;
  }

  // parallel capsules: MuJoCo pairs each end with the point next to it, so that one is fixed
  double b = dot(capsule[0].axis(), capsule[1].axis());
  bool both = c.slide[0] == CenterPair::kLine && c.slide[1] == CenterPair::kLine;
  // tie: parallel capsules
  if (both && 1 - b * b < kMinVal) return false;
  g.feature = f;
  return true;
}

}  // namespace mujacobian

// Distances between two geoms or bodies.
#include "sensor/distance.h"

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "second_order/pair.h"
#include "second_order/sensor_form.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// Returns the weighted values as a function of the pair.                                  (HSE-17)
ContactFunction weighted(const NearestPair& pair, int type, const double* weights) {
  const Vec3 normal = pair.geometry.normal;
  ContactFunction f{};
  if (type == sensor::kGeomDist) {
    f.slope.distance = weights[0];
  } else if (type == sensor::kGeomNormal) {
    f.add_turned(normal, pair.towards() * load3(weights));
  } else {
    const Vec3 first = load3(weights), second = load3(weights + 3);
    const Vec3 apart = (pair.swapped ? -0.5 : 0.5) * (second - first);
    f.slope.position = first + second;
    f.slope.distance = dot(apart, normal);
    f.across = cross(normal, apart);
    f.add_turned(pair.geometry.distance * normal, apart);
  }
  return f;
}

}  // namespace

void add_distance_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const NearestPair pair = nearest_pair(s, sensor);
  if (!pair.found) return;
  const ContactGeometry& g = pair.geometry;
  const char* reason = curvature_refusal(g);
  if (!reason && parallel_features(s.m, s.d, pair.contact) != Parallel::kNone) {
    reason = "second derivatives of the distance of parallel features";
  }
  if (reason) throw Unsupported(element_name(s.m, object::kSensor, sensor), reason);
  const ContactDofs c = contact_dofs(s.m, s.d, pair.contact, s.arena);
  const ContactMap map = vary_units(g, c.all_moves);
  const ContactFunction f = weighted(pair, s.m.sensor_type[sensor], weights);
  double* half = s.arena.zeros<double>(static_cast<std::size_t>(c.n) * c.stride);
  add_pair_hessian(s.m, c, nullptr, 0,
                   power_curvature(s.m, s.d, g, map, c.all_moves, nullptr, 0, f), half, s.arena);
  add_half(c, half, form);
}

}  // namespace mujacobian

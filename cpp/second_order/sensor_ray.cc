// Rangefinders.
#include "sensor/ray.h"

#include "layout/enums.h"
#include "second_order/pair.h"
#include "second_order/sensor_form.h"
#include "sensor/type.h"
#include "spatial/jet.h"

namespace mujacobian {
namespace {

using RayNumber = Jet<kPairColumns>;
using Vec = Vec3T<RayNumber>;

Vec mul(const Mat3& M, const Vec& x) {
  auto row = [&](int r) { return M(r, 0) * x.x + M(r, 1) * x.y + M(r, 2) * x.z; };
  return {row(0), row(1), row(2)};
}

// The exponential of a motion about the hit, up to second order.                          (HSE-18)
struct Pose {
  Vec turn, shift;

  // Moves a point, which is given relative to the hit, and turns a vector.
  Vec point(const Vec& x) const {
    const Vec moved = cross(turn, x) + shift;
    return x + moved + 0.5 * cross(turn, moved);
  }
  Vec vector(const Vec& x) const {
    const Vec moved = cross(turn, x);
    return x + moved + 0.5 * cross(turn, moved);
  }
  Pose inverse() const { return {-turn, -shift}; }
};

Pose pose_of(int side) {
  auto variable = [&](int k) { return jet_variable<kPairColumns>(0, 6 * side + k); };
  return {{variable(0), variable(1), variable(2)}, {variable(3), variable(4), variable(5)}};
}

// The values that a ray reports. All points are relative to the hit.
struct Reported {
  RayNumber distance;
  Vec direction, origin, point, normal;
};

// The ray meets the surface where it is in the frame of the geom. Two steps of Newton's method,
// from the present distance, give two derivatives.                                        (HSE-18)
Reported follow_ray(const Ray& ray) {
  const Pose carrier = pose_of(0), geom = pose_of(1), back = geom.inverse();
  Reported r;
  r.origin = carrier.point(ray.origin - ray.point);
  r.direction = carrier.vector(ray.direction);
  const Vec from = back.point(r.origin), along = back.vector(r.direction);
  const Vec3 arm = ray.point - ray.surface.center;
  const double present = dot(arm, ray.surface.Q * arm);
  r.distance = RayNumber(ray.distance);
  Vec normal = ray.normal;
  for (int step = 0; step < 2; step++) {
    const Vec at = from + r.distance * along;
    RayNumber above = dot(normal, at);
    if (!ray.surface.flat) {
      const Vec x = at + Vec(arm);
      normal = mul(ray.surface.Q, x);
      above = 0.5 * (dot(normal, x) - present);
    }
    r.distance = r.distance - above / dot(normal, along);
  }
  r.point = r.origin + r.distance * r.direction;
  if (!ray.surface.flat) {
    normal = mul(ray.surface.Q, from + r.distance * along + Vec(arm));
    const RayNumber length = sqrt(dot(normal, normal));
    const double outward = dot(ray.normal, ray.surface.Q * arm) > 0 ? 1 : -1;
    normal = (outward / length) * normal;
  }
  r.normal = geom.vector(normal);
  return r;
}

// Sums the fields of a ray with their weights, which are consecutive.
class WeightedFields {
 public:
  WeightedFields(const double* weights, int spec) : weights_(weights), spec_(spec) {}

  void add(int field, const RayNumber& x) {
    if (spec_ >> field & 1) sum = sum + *weights_++ * x;
  }
  void add(int field, const Vec& x) { add(field, x.x), add(field, x.y), add(field, x.z); }
  RayNumber sum{0};

 private:
  const double* weights_;
  int spec_;
};

RayNumber weighted(const Ray& ray, const double* weights, int spec) {
  const RayNumber zero(0);
  WeightedFields fields(weights, spec);
  if (ray.geom < 0) {  // only the origin moves; its arm is about itself
    const Vec none{zero, zero, zero};
    fields.add(ray_data::kDist, zero), fields.add(ray_data::kDir, none);
    fields.add(ray_data::kOrigin, pose_of(0).point(none));
    return fields.sum;
  }
  const Reported r = follow_ray(ray);
  fields.add(ray_data::kDist, r.distance);
  fields.add(ray_data::kDir, r.direction);
  fields.add(ray_data::kOrigin, r.origin);
  fields.add(ray_data::kPoint, r.point);
  fields.add(ray_data::kNormal, r.normal);
  fields.add(ray_data::kDepth, ray.slope * r.distance);
  return fields.sum;
}

}  // namespace

void add_ray_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const ModelView& m = s.m;
  const int spec = m.sensor_intprm[kNSens * sensor];
  const Frame frame = make_frame(s, m.sensor_objtype[sensor], m.sensor_objid[sensor]);
  visit_rays(m, sensor, [&](const LocalRay& local, int first) {
    const Ray ray = cast_ray(s, sensor, frame, local);
    const bool hits = ray.geom >= 0;
    const ContactDofs c = pair_dofs(m, s.d, frame.point.body, hits ? m.geom_bodyid[ray.geom] : 0,
                                    hits ? ray.point : ray.origin, s.arena);
    const RayNumber value = weighted(ray, weights + first, spec);
    PoseCurvature pose;
    for (int i = 0; i < kPairColumns; i++) {
      pose.gradient[i] = value.d[i];
      for (int k = 0; k < kPairColumns; k++) pose.half[i][k] = 0.5 * value.second(i, k);
    }
    double* half = s.arena.zeros<double>(static_cast<std::size_t>(c.n) * c.stride);
    add_pair_hessian(m, c, nullptr, 0, pose, half, s.arena);
    add_half(c, half, form);
  });
}

}  // namespace mujacobian

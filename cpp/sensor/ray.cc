#include "sensor/ray.h"

#include <cmath>

#include "contact/geom.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// The sphere, or the cylinder along an axis, about a point.
Surface sphere(Vec3 center) { return {false, center, identity3()}; }
Surface cylinder(const Geom& g) {
  return {false, g.position, identity3() + (-1.0) * outer(g.axis(), g.axis())};
}

// Returns the surface of a geom at a point with this normal.
Surface surface_at(const Geom& g, Vec3 point, Vec3 normal) {
  const Vec3 axis = g.axis();
  const double height = dot(axis, point - g.position);
  switch (g.type) {
    case geom::kSphere:
      return sphere(g.position);
    case geom::kCapsule:
      // tie: ray at the end of a capsule
      if (std::abs(height) > g.size[1]) {
        const double end = height > 0 ? g.size[1] : -g.size[1];
        return sphere(g.position + end * axis);
      }
      return cylinder(g);
    case geom::kCylinder:
      // tie: ray at the rim of a cylinder
      if (std::abs(dot(axis, normal)) > 0.5) return {true, point, {}};  // a cap
      return cylinder(g);
    case geom::kEllipsoid: {
      Mat3 Q{};
      for (int k = 0; k < 3; k++) {
        const Vec3 e = (1 / g.size[k]) * column(g.frame, k);
        Q = Q + outer(e, e);
      }
      return {false, g.position, Q};
    }
    default:
      return {true, point, {}};
  }
}

// Returns the change of the normal if the hit slides by `slide` along the surface       (SEN-27)
Vec3 normal_change(const Ray& ray, Vec3 slide) {
  const Surface& x = ray.surface;
  if (x.flat) return {0, 0, 0};
  const Vec3 change = (1 / dot(ray.normal, x.Q * (ray.point - x.center))) * (x.Q * slide);
  return change - dot(ray.normal, change) * ray.normal;
}

// A ray that hits a curved surface at a distance e from its silhouette has an angle to the surface
// whose sine is x = sqrt(2 e / r). Rounding of e changes 1 / x by a relative epsilon / x^2. Beyond
// 1e-6 the derivative is not accurate.                                                   (SEN-30)
constexpr double kGrazing = 1.5e-5;

bool grazes(const Ray& ray) {
  // tie: tangent ray
  return !ray.surface.flat && std::abs(dot(ray.normal, ray.direction)) < kGrazing;
}

// The motion of a ray and of the geom that it hits, with one dof.
struct RayChange {
  Vec3 origin, direction;  // of the ray
  Vec3 surface, turn;      // of the geom: motion of its point at the hit, rotation
};

// Writes the fields of a ray one after the other, from row `first` on.
class RayRows {
 public:
  RayRows(SensorRows& rows, int first, int spec) : rows_(rows), first_(first), spec_(spec) {}

  void start(int dof) { dof_ = dof, row_ = first_; }
  void put(int field, double x) {
    if (spec_ >> field & 1) rows_.q(row_++, dof_) += x;
  }
  void put(int field, Vec3 x) {
    if (!(spec_ >> field & 1)) return;
    rows_.q(row_, dof_) += x.x, rows_.q(row_ + 1, dof_) += x.y, rows_.q(row_ + 2, dof_) += x.z;
    row_ += 3;
  }

 private:
  SensorRows& rows_;
  int first_, spec_, dof_ = 0, row_ = 0;
};

// The hit stays on the ray and on the surface                                           (SEN-26)
void add_change(const Ray& ray, const RayChange& c, RayRows& out) {
  const Vec3 carried = c.origin + ray.distance * c.direction;
  const double closer = dot(ray.normal, c.surface - carried);
  const double distance = closer / dot(ray.normal, ray.direction);
  const Vec3 point = carried + distance * ray.direction;
  const Vec3 normal = cross(c.turn, ray.normal) + normal_change(ray, point - c.surface);
  out.put(ray_data::kDist, distance);
  out.put(ray_data::kDir, c.direction);
  out.put(ray_data::kOrigin, c.origin);
  out.put(ray_data::kPoint, point);
  out.put(ray_data::kNormal, normal);
  out.put(ray_data::kDepth, ray.slope * distance);
}

// Without a hit, everything except for the origin is constant.
void add_miss(const RayChange& c, RayRows& out) {
  const Vec3 zero{0, 0, 0};
  out.put(ray_data::kDist, 0.0);
  out.put(ray_data::kDir, zero);
  out.put(ray_data::kOrigin, c.origin);
}

// One ray that is fixed to a frame.
void add_ray(Sensing& s, const Frame& frame, const Ray& ray, RayRows out) {
  const ModelView& m = s.m;
  for (int i = 0; i < frame.n; i++) {
    const Vec3 origin = frame.moved[i] + cross(frame.turned[i], ray.origin - frame.position);
    const RayChange c{origin, cross(frame.turned[i], ray.direction), {0, 0, 0}, {0, 0, 0}};
    out.start(frame.dofs[i]);
    ray.geom < 0 ? add_miss(c, out) : add_change(ray, c, out);
  }
  if (ray.geom < 0) return;
  double hit[3];
  store3(hit, ray.point);
  const Point surface = make_point(m, s.d, m.geom_bodyid[ray.geom], hit);
  for (int dof = last_dof(m, surface.body); dof >= 0; dof = m.dof_parentid[dof]) {
    const Motion axis = dof_axis(s.d, dof);
    out.start(dof);
    add_change(ray, {{0, 0, 0}, {0, 0, 0}, at_point(axis, surface.offset), axis.ang}, out);
  }
}

}  // namespace

Ray cast_ray(const Sensing& s, int sensor, const Frame& frame, const LocalRay& local) {
  const ModelView& m = s.m;
  Ray ray{};
  ray.origin = frame.position + frame.axes * local.origin;
  ray.direction = frame.axes * local.direction;
  ray.slope = std::abs(local.direction.z);
  double from[3], along[3], normal[3];
  store3(from, ray.origin), store3(along, ray.direction);
  ray.distance = engine().mj_ray(m.address, s.d.address, from, along, nullptr, true,
                                 frame.point.body, &ray.geom, normal);
  // tie: ray at the end of a surface
  if (ray.geom < 0) return ray;
  ray.point = ray.origin + ray.distance * ray.direction;
  ray.normal = load3(normal);
  const Geom geom = load_geom(m, s.d, ray.geom);
  if (geom.type > geom::kMesh) {
    throw Unsupported(element_name(m, object::kSensor, sensor),
                      "surfaces of the type that its ray hits are not supported");
  }
  ray.surface = surface_at(geom, ray.point, ray.normal);
  if (grazes(ray)) {
    throw Unsupported(element_name(m, object::kSensor, sensor),
                      "its ray is tangent to the surface that it hits");
  }
  return ray;
}

void sense_ray(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const int spec = m.sensor_intprm[kNSens * sensor];
  const Frame frame = make_frame(s, m.sensor_objtype[sensor], m.sensor_objid[sensor]);
  visit_rays(m, sensor, [&](const LocalRay& local, int first) {
    add_ray(s, frame, cast_ray(s, sensor, frame, local), {rows, first, spec});
  });
}

}  // namespace mujacobian

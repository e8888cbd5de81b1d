// Cameras that track or target a body, and projections into the image of a camera.
#include "sensor/camera.h"

#include <cmath>
#include <numbers>

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "sensor/subtree.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// moved[k] += sign * change of a body's position, or of its subtree's center of mass
void add_motion(Sensing& s, int body, bool center, double sign, Vec3* moved) {
  const ModelView& m = s.m;
  if (center) {
    return visit_subtree(m, body, [&](int k, int part) {
      moved[k] += sign * center_jacobian(m, s.d, body, k, part);
    });
  }
  const Point origin = make_point(m, s.d, body, s.d.xpos + 3 * body);
  for (int k = last_dof(m, body); k >= 0; k = m.dof_parentid[k]) {
    moved[k] += sign * point_jacobian(s.d, origin, k);
  }
}

// Returns the part of dx that is orthogonal to the unit vector x.
Vec3 across(Vec3 x, Vec3 dx) { return dx - dot(x, dx) * x; }

// Rotation of axes z = p/|p|, x = e_z x z / |e_z x z|, y = z x x when p moves by dp      (SEN-13)
Vec3 look_turn(const Mat3& axes, double distance, Vec3 dp) {
  const Vec3 up{0, 0, 1}, x = column(axes, 0), y = column(axes, 1), z = column(axes, 2);
  const Vec3 dz = (1 / distance) * across(z, dp);
  const Vec3 dx = (1 / norm(cross(up, z))) * across(x, cross(up, dz));
  const Vec3 dy = cross(dz, x) + cross(z, dx);
  return 0.5 * (cross(x, dx) + cross(y, dy) + cross(z, dz));
}

// Returns the focal lengths in pixels.
Vec3 focal_lengths(const ModelView& m, int camera) {
  const float *size = m.cam_sensorsize + 2 * camera, *lens = m.cam_intrinsic + 4 * camera;
  const int* resolution = m.cam_resolution + 2 * camera;
  if (size[0] && size[1]) {
    return {static_cast<double>(lens[0] / size[0] * static_cast<float>(resolution[0])),
            static_cast<double>(lens[1] / size[1] * static_cast<float>(resolution[1])), 0};
  }
  const double focal = 0.5 / std::tan(m.cam_fovy[camera] * std::numbers::pi / 360) * resolution[1];
  return {focal, focal, 0};
}

}  // namespace

LocalRay pixel_ray(const ModelView& m, int camera, int column, int row) {
  const int* resolution = m.cam_resolution + 2 * camera;
  const double width = resolution[0], height = resolution[1];
  double x = column + 0.5 - width / 2, y = row + 0.5 - height / 2;
  if (m.cam_projection[camera] != projection::kPerspective) {
    const double half_extent = m.cam_fovy[camera] / 2;
    return {{x / (width / 2) * half_extent, -y / (height / 2) * half_extent, 0}, {0, 0, -1}};
  }
  const float *size = m.cam_sensorsize + 2 * camera, *lens = m.cam_intrinsic + 4 * camera;
  if (size[0] && size[1]) {
    x = column + 0.5 - static_cast<double>(lens[2] / size[0] * static_cast<float>(resolution[0]));
    y = row + 0.5 - static_cast<double>(lens[3] / size[1] * static_cast<float>(resolution[1]));
  }
  const Vec3 focal = focal_lengths(m, camera), direction{x / focal.x, -y / focal.y, -1};
  return {{0, 0, 0}, (1 / norm(direction)) * direction};
}

Frame follow(Sensing& s, int camera, const Frame& fixed) {
  const ModelView& m = s.m;
  const int mode = m.cam_mode[camera], body = m.cam_bodyid[camera];
  const int target = m.cam_targetbodyid[camera];
  const bool tracks = mode == camera::kTrack || mode == camera::kTrackCom;
  if (!tracks && target < 0) return fixed;

  Frame f = fixed;
  f.n = m.nv;
  int* dofs = s.arena.take<int>(m.nv);
  Vec3* moved = s.arena.zeros<Vec3>(m.nv);
  Vec3* turned = s.arena.zeros<Vec3>(m.nv);
  for (int k = 0; k < m.nv; k++) dofs[k] = k;
  f.dofs = dofs, f.moved = moved, f.turned = turned;

  // a tracking camera keeps its orientation and its distance
  if (tracks) {
    add_motion(s, body, mode == camera::kTrackCom, 1, moved);
    return f;
  }

  const bool center = mode == camera::kTargetBodyCom;
  const double* point = (center ? s.d.subtree_com : s.d.xpos) + 3 * target;
  const Vec3 away = f.position - load3(point);
  const double distance = norm(away);
  // tie: camera at its target
  if (distance < kMinVal || norm(cross({0, 0, 1}, away)) < kMinVal * distance) {
    throw Unsupported(element_name(m, object::kCamera, camera),
                      "it points straight up or down, where its axes are undefined");
  }
  for (int i = 0; i < fixed.n; i++) moved[fixed.dofs[i]] = fixed.moved[i];
  Vec3* span = s.arena.take<Vec3>(m.nv);
  for (int k = 0; k < m.nv; k++) span[k] = moved[k];
  add_motion(s, target, center, -1, span);
  for (int k = 0; k < m.nv; k++) turned[k] = look_turn(f.axes, distance, span[k]);
  return f;
}

Projection project(const Sensing& s, int sensor, const Frame& site, const Frame& camera) {
  const Vec3 x = transpose_mul(camera.axes, site.position - camera.position);
  // tie: site beside a camera
  if (std::abs(x.z) < kMinVal) {
    throw Unsupported(element_name(s.m, object::kSensor, sensor),
                      "its site is in the plane of the camera, where its projection is infinite");
  }
  return {focal_lengths(s.m, s.m.sensor_refid[sensor]), x};
}

// With x the site's position in the camera's axes, the image is (-fx x_0 / x_2, fy x_1 / x_2)
// (SEN-12)
void sense_projection(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const Frame site = make_frame(s, object::kSite, m.sensor_objid[sensor]);
  const Frame view = make_frame(s, object::kCamera, m.sensor_refid[sensor]);
  const auto& [focal, x] = project(s, sensor, site, view);
  const Vec3 span = site.position - view.position;
  auto add = [&](int dof, Vec3 change) {
    const Vec3 dx = transpose_mul(view.axes, change);
    rows.q(0, dof) += -focal.x * (dx.x - x.x / x.z * dx.z) / x.z;
    rows.q(1, dof) += focal.y * (dx.y - x.y / x.z * dx.z) / x.z;
  };
  for (int i = 0; i < site.n; i++) add(site.dofs[i], site.moved[i]);
  for (int i = 0; i < view.n; i++) {
    add(view.dofs[i], cross(span, view.turned[i]) - view.moved[i]);
  }
}

}  // namespace mujacobian

#include "contact/standing_cylinder.h"

#include <cmath>

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// Below this tilt, in rad, MuJoCo takes a cylinder to stand flat.
constexpr double kFlat = kMinVal;

// Tilt below which the distances of the points are computed again: above it, the error of MuJoCo's
// distances is less than 1e-8 of their dependence on the tilt.
constexpr double kStanding = 1e-4;

// Tilt below which this error exceeds 1e-6.
constexpr double kInaccurate = 1e-5;

// Whether a contact is one of a plane and a cylinder that almost stands on it, up to a tilt.
bool is_standing(const ModelView& m, const DataView& d, const int id[2], double most = kStanding) {
  if (id[0] < 0 || id[1] < 0 || m.geom_type[id[0]] != geom::kPlane ||
      m.geom_type[id[1]] != geom::kCylinder) {
    return false;
  }
  const Vec3 n = load_geom(m, d, id[0]).axis(), axis = load_geom(m, d, id[1]).axis();
  const double tilt = norm(cross(axis, n));
  return tilt >= kFlat && tilt < most;
}

}  // namespace

std::optional<Vec3> touching_point(const Geom& cylinder, Vec3 n, Vec3 p) {
  const Vec3 local = transpose_mul(cylinder.frame, n), q = cylinder.to_local(p);
  const double flat = std::sqrt(local.x * local.x + local.y * local.y);
  const double radius = cylinder.size[0], height = cylinder.size[1];
  // tie: upright cylinder
  const Vec3 e = flat < kFlat ? Vec3{1, 0, 0} : Vec3{-local.x / flat, -local.y / flat, 0};
  const Vec3 f = {-e.y, e.x, 0};
  // tie: lower cap of a cylinder
  const double lower = local.z > 0 ? -height : height, side = std::sqrt(3.0) / 2;
  // for a cylinder that is nearly upright, rounding of the frame turns the lowest line
  const double slack = 1e-9 + (flat < kFlat ? 0 : radius * 1e-14 / flat);
  const Vec3 points[4] = {radius * e + Vec3{0, 0, lower}, radius * e - Vec3{0, 0, lower},
                          radius * (-0.5 * e + side * f) + Vec3{0, 0, lower},
                          radius * (-0.5 * e - side * f) + Vec3{0, 0, lower}};
  for (const Vec3& point : points) {
    if (norm(point - q) < slack) return point;
  }
  return std::nullopt;
}

bool has_standing_cylinder(const ModelView& m, const DataView& d) {
  for (int k = 0; k < d.ncon; k++) {
    if (is_standing(m, d, contact_geoms(d, k)) && view_contact(d, k).efc_address >= 0) return true;
  }
  return false;
}

void require_no_standing_cylinder(const ModelView& m, const DataView& d) {
  for (int k = 0; k < d.ncon; k++) {
    if (!is_standing(m, d, contact_geoms(d, k), kInaccurate)) continue;
    const ContactView contact = view_contact(d, k);
    if (contact.efc_address < 0) continue;
    throw Unsupported(contact_name(m, contact),
                      "the cylinder stands with a tilt below 1e-5 rad, which amplifies MuJoCo's "
                      "rounding errors; only forward dynamics without plugins, flexes, body "
                      "transmissions and the discrete integrator avoids them");
  }
}

void place_standing_cylinders(const ModelView& m, const DataView& d) {
  for (int k = 0; k < d.ncon; k++) {
    if (!is_standing(m, d, contact_geoms(d, k))) continue;
    const ContactView contact = view_contact(d, k);
    const Geom plane = load_geom(m, d, contact.geom.v[0]);
    const Geom cylinder = load_geom(m, d, contact.geom.v[1]);
    const Vec3 n = plane.axis();
    const Vec3 touch = load3(contact.pos.v) + (contact.dist / 2) * n;
    const std::optional<Vec3> point = touching_point(cylinder, n, touch);
    if (!point) continue;
    // the part of the point across the axis times the tilt, apart from larger numbers
    const double dist =
        dot(n, cylinder.position - plane.position) + dot(transpose_mul(cylinder.frame, n), *point);
    double pos[3];
    store3(pos, cylinder.to_world(*point) - (dist / 2) * n);
    write_contact(d, k, dist, pos, contact.frame.v);
  }
}

}  // namespace mujacobian

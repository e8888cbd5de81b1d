#include "contact/geom.h"

#include <cmath>

#include "layout/enums.h"
#include "layout/views.h"

namespace mujacobian {
namespace {

// x is plus or minus `size`, up to rounding.
bool reaches(double x, double size) { return std::abs(std::abs(x) - size) <= 1e-9 * (1 + size); }

double sign(double x) { return x < 0 ? -1 : 1; }

}  // namespace

Geom load_geom(const ModelView& m, const DataView& d, int id) {
  return {m.geom_type[id], load3(d.geom_xpos + 3 * id), load9(d.geom_xmat + 9 * id),
          m.geom_size + 3 * id};
}

Vec3 surface_growth(const Geom& geom, Vec3 p, int component) {
  const double x[3] = {p.x, p.y, p.z};
  if (geom.type == geom::kBox) {
    const bool moves = reaches(x[component], geom.size[component]);
    return moves ? sign(x[component]) * unit3(component) : Vec3{0, 0, 0};
  }
  // a capsule or cylinder: half its length, then its radius
  if (component == 1) return reaches(p.z, geom.size[1]) ? sign(p.z) * unit3(2) : Vec3{0, 0, 0};
  const Vec3 radial{p.x, p.y, 0};
  return reaches(norm(radial), geom.size[0]) ? (1 / norm(radial)) * radial : Vec3{0, 0, 0};
}

Vec3 face_growth(const Geom& geom, Vec3 outward, int component) {
  // the axis of the geom along which this size extends it to a face
  const int axis = geom.type == geom::kBox ? component : component == 1 ? 2 : -1;
  const double along[3] = {outward.x, outward.y, outward.z};
  return axis >= 0 && reaches(along[axis], 1) ? sign(along[axis]) * unit3(axis) : Vec3{0, 0, 0};
}

}  // namespace mujacobian

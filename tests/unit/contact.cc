// Contacts and their derivatives: cpp/contact.
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "casters.h"
#include "contact/curvature.h"
#include "contact/identification.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "primitives.h"

namespace mujacobian {
namespace {

using Row = std::array<double, ContactMap::kColumns>;

void configure(const std::vector<std::pair<int, int>>& places, int option_offset, int contact_size,
               int model_size, const std::map<std::string, std::uintptr_t>& addresses,
               const std::map<std::string, int>& constants) {
  std::vector<Place> all;
  for (auto [offset, size] : places) all.push_back({offset, size});
  set_layout(all, option_offset, contact_size, model_size);
  set_engine(addresses, constants);
}

Row row(const double* p) {
  Row result;
  std::copy(p, p + result.size(), result.begin());
  return result;
}

// The collider finds contacts of curved geoms only to its tolerance, and differences would show
// this error. The functions below compute these contacts again from their features, to rounding
// errors.

void set_normal(Vec3 between, ContactGeometry& g) {
  g.normal = g.flipped ? -between : between;
  const Vec3 tangent = g.hint - dot(g.hint, g.normal) * g.normal;
  g.hint_length = norm(tangent);
  g.tangent[0] = (1 / g.hint_length) * tangent;
  g.tangent[1] = cross(g.normal, g.tangent[0]);
}

void polish(const SupportFeature& f, ContactGeometry& g) {
  const SupportSide* side = f.side;
  const Vec3 span = side[1].point - side[0].point;
  const double reach = std::copysign(norm(span), dot(span, g.between()));
  const Vec3 n = (1 / reach) * span;
  g.distance = reach - side[0].radius - side[1].radius;
  g.position = side[0].point + (side[0].radius + g.distance / 2) * n;
  set_normal(n, g);
}

void polish(SimplexFeature& f, ContactGeometry& g) {
  const SimplexBasis basis = simplex_basis(f);
  f.weight[0] = 1;
  for (int i = 0; i < basis.size; i++) {
    f.weight[i + 1] = -dot(basis.dual[i], difference(f, 0));
    f.weight[0] -= f.weight[i + 1];
  }
  const ContactPoint at = rederive(f, g.between());
  g.distance = at.distance, g.position = at.position;
  set_normal(at.normal, g);
}

// Sets the supports at a rim and their normal to the optimum.
void polish_rim(const Geom geom[2], SegmentPoint& s) {
  constexpr int kSteps = 20;
  const Vec3 still[2] = {};
  SupportSide* side = s.rim.side;
  Vec3& n = s.towards;
  for (int step = 0; step < kSteps; step++) {
    for (int k = 0; k < 2; k++) {
      const double* follow = side[k].follow.m;
      const bool curved = follow[0] + follow[4] + follow[8] > 0;
      for (int i = 0; i < side[k].slides; i++) {
        n = n - dot(n, side[k].slide[i]) * side[k].slide[i];
      }
      n = unit(n);
      if (!curved) continue;
      const Vec3 a = geom[k].axis(), outward = k ? -n : n;
      const double up = std::copysign(geom[k].size[1], dot(side[k].point - geom[k].position, a));
      const Vec3 radial = outward - dot(outward, a) * a, t = cross(a, unit(radial));
      side[k].point = geom[k].position + up * a + geom[k].size[0] * unit(radial);
      side[k].follow = outer((geom[k].size[0] / norm(radial)) * t, t);
    }
    const Vec3 span = side[1].point - side[0].point;
    const double reach = dot(n, span), distance = reach - side[0].radius - side[1].radius;
    const SupportChange c = support_change(s.rim, n, distance, still, still, span - reach * n);
    n = unit(n + c.normal);
    for (int k = 0; k < 2; k++) side[k].point += c.point[k];
  }
}

void polish(const Geom geom[2], FaceFeature& f, SegmentPoint& s, ContactGeometry& g) {
  if (s.radius == 0) return;
  if (s.direction == SegmentPoint::kRim) polish_rim(geom, s);
  const Vec3 a = s.axis, arm = s.point - geom[0].position;
  const Vec3 change = surface_offset(s) - (arm - dot(arm, a) * a);
  Vec3 x = s.point + change;
  if (s.rule == SegmentPoint::kPlane) x += (-dot(s.side, change) / dot(s.side, a)) * a;
  f.distance += dot(f.outward, x - f.center);
  f.center = s.point = s.start = x;
  g.distance = f.distance;
  g.position = rederive(f, g.normal).position;
}

// Sets the normal of a face of a box or of a cylinder to that of the geom.
void polish_normal(const Geom& geom, FaceFeature& f, ContactGeometry& g) {
  constexpr double kNear = 1e-6;
  if (geom.type != geom::kBox && geom.type != geom::kCylinder) return;
  for (int k = geom.type == geom::kBox ? 0 : 2; k < 3; k++) {
    const Vec3 axis =
        std::copysign(1, dot(column(geom.frame, k), f.outward)) * column(geom.frame, k);
    if (norm(axis - f.outward) > kNear) continue;
    f.outward = f.shift = axis;
    set_normal(f.owner == 0 ? axis : -axis, g);
  }
}

void polish(const ModelView& m, const DataView& d, ContactGeometry& g) {
  if (g.refusal) return;
  if (const auto* supports = std::get_if<SupportFeature>(&g.feature)) return polish(*supports, g);
  if (auto* simplex = std::get_if<SimplexFeature>(&g.feature)) return polish(*simplex, g);
  auto* face = std::get_if<FaceFeature>(&g.feature);
  if (!face || face->shift_with_other) return;
  polish_normal(load_geom(m, d, g.geom[face->owner]), *face, g);
  auto* segment = std::get_if<SegmentPoint>(&face->slide);
  if (!segment) return;
  const Geom geom[2] = {load_geom(m, d, g.geom[segment->owner]),
                        load_geom(m, d, g.geom[1 - segment->owner])};
  polish(geom, *face, *segment, g);
}

// MuJoCo's contacts, with their features. The model and the data are given by their addresses.
class Contacts {
 public:
  Contacts(std::uintptr_t model, std::uintptr_t data)
      : m_(view_model(reinterpret_cast<void*>(model))),
        d_(view_data(reinterpret_cast<void*>(data))),
        geometry_(d_.ncon) {
    for (int i = 0; i < d_.ncon; i++) {
      const ContactGeometry* before = i > 0 ? &geometry_[i - 1] : nullptr;
      geometry_[i] = identify(m_, d_, view_contact(d_, i), before);
    }
    for (ContactGeometry& g : geometry_) polish(m_, d_, g);
  }

  int count() const { return d_.ncon; }
  bool known(int i) const { return !geometry_[i].refusal; }
  std::string name(int i) const { return describe(geometry_[i]); }
  Vec3 position(int i) const { return geometry_[i].position; }

  // Rows of the ContactMap: distance, position, turn.
  std::vector<Row> map(int i) const {
    const ContactMap map = vary_units(geometry_[i], 3);
    std::vector<Row> rows{row(map.distance)};
    for (const double* p : map.position) rows.push_back(row(p));
    for (const double* p : map.turn) rows.push_back(row(p));
    return rows;
  }

  std::vector<Row> curvature(int i, double distance, Vec3 position, Vec3 turn) const {
    const ContactCurvature h = second_order(m_, d_, geometry_[i], {distance, position, turn}, 3);
    std::vector<Row> rows;
    for (const double* p : h.m) rows.push_back(row(p));
    return rows;
  }

 private:
  ModelView m_;
  DataView d_;
  std::vector<ContactGeometry> geometry_;
};

}  // namespace

void bind_contact(nanobind::module_& m) {
  namespace nb = nanobind;
  m.def("configure", configure, nb::arg("places"), nb::arg("option_offset"),
        nb::arg("contact_size"), nb::arg("model_size"), nb::arg("addresses"), nb::arg("constants"));
  nb::class_<Contacts>(m, "Contacts")
      .def(nb::init<std::uintptr_t, std::uintptr_t>())
      .def("__len__", &Contacts::count)
      .def("known", &Contacts::known)
      .def("name", &Contacts::name)
      .def("position", &Contacts::position)
      .def("map", &Contacts::map)
      .def("curvature", &Contacts::curvature);
}

}  // namespace mujacobian

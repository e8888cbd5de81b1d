#include "bindings/rod_model.h"

#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <string>

#include "bindings/errors.h"
#include "bindings/rod_arrays.h"
#include "layout/interrupt.h"
#include "rods/grid.h"
#include "rods/trajectory.h"
#include "rods/triangles.h"

namespace mujacobian {
namespace {

using namespace rods;  // NOLINT: this file is about nothing else

Vec3 vec3(const Numbers& array) { return load3(data(array, 3)); }

std::vector<double> doubles(const Numbers& a) { return {a.data(), a.data() + a.size()}; }
std::vector<int> integers(const Integers& a) { return {a.data(), a.data() + a.size()}; }
std::vector<char> flags(const Integers& a) { return {a.data(), a.data() + a.size()}; }

MaterialPoint material_point(const int* i, const double* x) {
  return {{i[0], i[1]}, {x[0], x[1]}, i[2], load3(x + 2)};
}

void construct(Model* m, double timestep, const Numbers& gravity, const Numbers& mass,
               const Numbers& drag, const Integers& point_fixed, const Integers& point_slot,
               const Numbers& moment, const Numbers& spin_drag, const Integers& frame_fixed,
               const Integers& frame_slot, int targets, int order) {
  const size_t points = mass.size(), frames = spin_drag.size();
  data(drag, points), data(point_fixed, points), data(point_slot, points);
  data(moment, 9 * frames), data(frame_fixed, frames), data(frame_slot, frames);
  new (m) Model{};
  m->timestep = timestep;
  m->gravity = vec3(gravity);
  m->mass = doubles(mass), m->drag = doubles(drag);
  m->point_fixed = flags(point_fixed), m->point_slot = integers(point_slot);
  m->moment = matrices(moment), m->spin_drag = doubles(spin_drag);
  m->frame_fixed = flags(frame_fixed), m->frame_slot = integers(frame_slot);
  m->targets = targets;
  m->order = order;
}

void append_edges(Model& m, const Integers& ids, const Numbers& values) {
  data(values, 4 * (ids.size() / 3));
  for (size_t k = 0; 3 * k < ids.size(); k++) {
    const int* i = ids.data() + 3 * k;
    const double* x = values.data() + 4 * k;
    m.edges.push_back({i[0], i[1], i[2], x[0], x[1], x[2], x[3]});
  }
}

// Per bend: the indices of two edges (-1: the wall of a clamp) and whether the measure is a
// tangent; stiffness, damping and the axes of the wall.
void append_bends(Model& m, const Integers& ids, const Numbers& values) {
  data(values, 15 * (ids.size() / 3));
  auto length = [&](int edge) { return edge < 0 ? 0 : m.edges[edge].length; };
  for (size_t k = 0; 3 * k < ids.size(); k++) {
    const int* i = ids.data() + 3 * k;
    const double* x = values.data() + 15 * k;
    m.bends.push_back({i[0], i[1], 0.5 * (length(i[0]) + length(i[1])), load3(x), load3(x + 3),
                       i[2] != 0, load9(x + 6)});
  }
}

void add_spring(Model& m, const Integers& ids, const Numbers& values, int target,
                double stiffness) {
  const int* i = data(ids, 6);
  const double* x = data(values, 10);
  m.springs.push_back(
      {material_point(i, x), material_point(i + 3, x + 5), target, m.attachments(), stiffness});
}

void add_weld(Model& m, int first, int second, const Numbers& first_axes,
              const Numbers& second_axes, double stiffness) {
  m.welds.push_back({first, second, load9(data(first_axes, 9)), load9(data(second_axes, 9)),
                     m.attachments(), stiffness});
}

void add_cable(Model& m, const Integers& ids, const Numbers& values) {
  Cable c;
  for (size_t k = 0; 3 * k < ids.size(); k++) {
    c.path.push_back(material_point(ids.data() + 3 * k, values.data() + 5 * k));
  }
  m.cables.push_back(c);
}

// Adds a surface, and spheres about material points that can touch it
void add_contacts_with(Model& m, const Integers& ids, const Numbers& values,
                       const Integers& rolling, int shape, int body_point, int body_frame,
                       double radius, double stiffness, double friction, double slip) {
  const int* frames = data(rolling, 2 * (ids.size() / 3));
  const double reach = m.shapes.at(shape)->reach();  // `added` in Python has checked the index
  if (radius > reach) {
    raise_argument("radius " + std::to_string(radius) + " of a contact exceeds the margin " +
                   std::to_string(reach) + " of a mesh");
  }
  const int surface = static_cast<int>(m.surfaces.size());
  m.surfaces.push_back(
      {shape, body_point, body_frame, radius, stiffness, friction, slip, m.contact_kinds()});
  for (size_t k = 0; 3 * k < ids.size(); k++) {
    m.contacts.push_back({material_point(ids.data() + 3 * k, values.data() + 5 * k),
                          surface,
                          {frames[2 * k], frames[2 * k + 1]}});
  }
}

// Adds round segments that may touch each other. Per segment: its ends as material points; the
// index of its frame, rod or body, and group; its radius, the distances of its ends along a rod,
// and the length of a closed rod.
void add_segments_with(Model& m, const Integers& ids, const Numbers& values,
                       const Integers& belongings, const Numbers& measures, bool is_divided,
                       double stiffness, double friction, double slip) {
  const size_t count = belongings.size() / 3;
  const int *i = data(ids, 6 * count), *own = belongings.data();
  const double *x = data(values, 10 * count), *size = data(measures, 4 * count);
  Bundle bundle{{}, is_divided, stiffness, friction, slip, m.contact_kinds()};
  for (size_t k = 0; k < count; k++, i += 6, x += 10, own += 3, size += 4) {
    bundle.segments.push_back({material_point(i, x), material_point(i + 3, x + 5), own[0], size[0],
                               own[1], own[2], size[1], size[2], size[3]});
  }
  m.bundles.push_back(std::move(bundle));
}

// Signed distances of a closed surface at the points of a grid
void signed_distances_into(const Numbers& vertices, const Integers& faces, const Numbers& origin,
                           double cell, const Integers& counts, const Doubles& distances) {
  std::vector<std::array<int, 3>> all;
  for (size_t k = 0; k + 2 < faces.size(); k += 3) {
    all.push_back({faces.data()[k], faces.data()[k + 1], faces.data()[k + 2]});
  }
  const Triangles surface(vectors(vertices), std::move(all));
  const int* n = data(counts, 3);
  double* out = data(distances, static_cast<size_t>(n[0]) * n[1] * n[2]);
  const Vec3 first = vec3(origin);
  run([&] {
    for (int i = 0; i < n[0]; i++) {
      poll_interrupt();
      for (int j = 0; j < n[1]; j++)
        for (int k = 0; k < n[2]; k++) {
          *out++ = surface.signed_distance(first + cell * Vec3{1.0 * i, 1.0 * j, 1.0 * k});
        }
    }
  });
}

int keep(Model& m, std::shared_ptr<const Shape> shape) {
  m.shapes.push_back(std::move(shape));
  return static_cast<int>(m.shapes.size()) - 1;
}

}  // namespace

void bind_rod_model(nb::module_& module) {
  using nb::arg;
  module.def("rods_signed_distances_into", &signed_distances_into, arg("vertices"), arg("faces"),
             arg("origin"), arg("cell"), arg("counts"), arg("distances"));
  nb::class_<Model>(module, "RodModel")
      .def("__init__", &construct, arg("timestep"), arg("gravity"), arg("mass"), arg("drag"),
           arg("point_fixed"), arg("point_slot"), arg("moment"), arg("spin_drag"),
           arg("frame_fixed"), arg("frame_slot"), arg("targets"), arg("order"))
      .def("add_edges", &append_edges)
      .def("add_bends", &append_bends)
      .def("add_spring", &add_spring)
      .def("add_weld", &add_weld)
      .def("add_cable", &add_cable)
      .def("add_contacts", &add_contacts_with, arg("ids"), arg("values"), arg("rolling"),
           arg("shape"), arg("body_point"), arg("body_frame"), arg("radius"), arg("stiffness"),
           arg("friction"), arg("slip"))
      .def("add_segments", &add_segments_with, arg("ids"), arg("values"), arg("belongings"),
           arg("measures"), arg("is_divided"), arg("stiffness"), arg("friction"), arg("slip"))
      .def("add_plane",
           [](Model& m, const Numbers& normal, double offset) {
             return keep(m, std::make_shared<Plane>(vec3(normal), offset));
           })
      .def("add_tube",
           [](Model& m, const Numbers& vertices, double radius) {
             return keep(m, std::make_shared<Tube>(vectors(vertices), radius));
           })
      .def("add_box",
           [](Model& m, const Numbers& half, const Numbers& center, const Numbers& axes) {
             Mat3 turned = load9(data(axes, 9));
             return keep(m, std::make_shared<Box>(vec3(half), vec3(center), turned));
           })
      .def("add_grid",
           [](Model& m, const Numbers& origin, double cell, const Integers& counts,
              const Numbers& samples, double reach) {
             const int* n = data(counts, 3);
             const double* x = data(samples, static_cast<size_t>(n[0]) * n[1] * n[2]);
             return keep(m, std::make_shared<Grid>(vec3(origin), cell,
                                                   std::array<int, 3>{n[0], n[1], n[2]}, x, reach));
           })
      .def("add_union",
           [](Model& m, const std::vector<int>& parts) {
             std::vector<std::shared_ptr<const Shape>> all;
             for (int k : parts) all.push_back(m.shapes.at(k));
             return keep(m, std::make_shared<Union>(all));
           })
      .def("add_complement",
           [](Model& m, int shape) {
             return keep(m, std::make_shared<Complement>(m.shapes.at(shape)));
           })
      .def("shapes", [](const Model& m) { return m.shapes.size(); })
      .def("hessian_blocks",
           [](const Model& m) { return SparseMatrix(m.slots(), couplings(m)).blocks(); });
}

}  // namespace mujacobian

#include "bindings/cost.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings/errors.h"
#include "control/cost.h"
#include "linear/lanes.h"

namespace mujacobian {
namespace {

// (start, index, coefficient)
using Compressed = std::tuple<std::vector<int>, std::vector<int>, std::vector<double>>;
// (first row, rows, norm, p, q)
using Terms = std::vector<std::tuple<int, int, std::string, double, double>>;
// (operation, p, first operand, second operand)
using Nodes = std::vector<std::tuple<std::string, double, int, int>>;

CostRows* make_cost(int ns, int nu, int nx, const Compressed& rows, const Terms& terms,
                    const Compressed& operands, std::vector<double> constants, const Nodes& nodes) {
  const auto affine = [](const Compressed& given) {
    return AffineRows{std::get<0>(given), std::get<1>(given), std::get<2>(given)};
  };
  auto cost = std::make_unique<CostRows>(
      CostRows{affine(rows), ns, nu, nx, {}, {ns, nu, affine(operands), std::move(constants), {}}});
  for (const auto& [first, count, norm, p, q] : terms) {
    cost->terms.push_back({first, count, {norm_kind(norm), p, q}});
  }
  for (const auto& [operation, p, first, second] : nodes) {
    cost->graph.nodes.push_back({graph_operation(operation), p, first, second});
  }
  return cost.release();
}

void evaluate_into(const CostRows& rows, nb::handle sensors, nb::handle controls,
                   nb::handle offsets, nb::handle norms) {
  const Py_ssize_t n = size_of(sensors), nterm = rows.terms.size();
  Array s(sensors, "sensordata", {n, rows.ns}, false), u(controls, "controls", {n, rows.nu}, false),
      c(offsets, "offsets", {n, rows.count()}, false), out(norms, "norms", {n, nterm}, true);
  run([&] {
    Arena arena;
    const std::vector<double> weights(nterm, 0);
    for (Py_ssize_t t = 0; t < n; t++) {
      evaluate_cost(rows,
                    {s.data() + t * rows.ns, u.data() + t * rows.nu, c.data() + t * rows.count()},
                    weights.data(), out.data() + t * nterm, arena);
    }
  });
}

void expand_into(const CostRows& rows, nb::handle sensors, nb::handle controls, nb::handle offsets,
                 nb::handle weights, nb::handle C, nb::handle D, nb::handle gradient,
                 nb::handle hessian) {
  const Py_ssize_t n = size_of(sensors), nterm = rows.terms.size(), ns = rows.ns, nx = rows.nx,
                   nu = rows.nu, nz = nx + nu, stride = round_to_lanes(nz);
  Array s(sensors, "sensordata", {n, ns}, false), u(controls, "controls", {n, nu}, false),
      c(offsets, "offsets", {n, rows.count()}, false), w(weights, "weights", {n, nterm}, false),
      sx(C, "C", {n, ns, nx}, false), su(D, "D", {n, ns, nu}, false),
      g(gradient, "gradient", {n, nz}, true), h(hessian, "hessian", {n, nz, stride}, true);
  run([&] {
    Arena arena;
    for (Py_ssize_t t = 0; t < n; t++) {
      arena.reset();
      expand_cost(rows, {s.data() + t * ns, u.data() + t * nu, c.data() + t * rows.count()},
                  w.data() + t * nterm, sx.data() + t * ns * nx, su.data() + t * ns * nu,
                  g.data() + t * nz, h.data() + t * nz * stride, stride, arena);
    }
  });
}

// Writes the values (n, rows) of the rows, NaN if a row is off, and their derivatives (n, rows, ns
// + nu) by sensors and controls unless they are None.
void rows_into(const CostRows& rows, nb::handle sensors, nb::handle controls, nb::handle offsets,
               nb::handle values, nb::handle gradients) {
  const Py_ssize_t n = size_of(sensors), ns = rows.ns, nu = rows.nu, k = rows.count();
  Array s(sensors, "sensordata", {n, ns}, false), u(controls, "controls", {n, nu}, false),
      c(offsets, "offsets", {n, k}, false), r(values, "values", {n, k}, true),
      g(gradients, "gradients", {n, k, ns + nu}, true);
  run([&] {
    Arena arena;
    for (Py_ssize_t t = 0; t < n; t++) {
      arena.reset();
      differentiate_rows(rows, {s.data() + t * ns, u.data() + t * nu, c.data() + t * k},
                         r.data() + t * k, g.data() ? g.data() + t * k * (ns + nu) : nullptr,
                         arena);
    }
  });
}

// Adds the second derivatives (n, ns + nu, ns + nu) of the cost by sensors and controls that are
// due to products and functions of rows.
void curve_into(const CostRows& rows, nb::handle sensors, nb::handle controls, nb::handle offsets,
                nb::handle weights, nb::handle hessian) {
  const Py_ssize_t n = size_of(sensors), ns = rows.ns, nu = rows.nu, k = rows.count(),
                   nterm = rows.terms.size(), width = ns + nu;
  Array s(sensors, "sensordata", {n, ns}, false), u(controls, "controls", {n, nu}, false),
      c(offsets, "offsets", {n, k}, false), w(weights, "weights", {n, nterm}, false),
      h(hessian, "hessian", {n, width, width}, true);
  run([&] {
    Arena arena;
    for (Py_ssize_t t = 0; t < n; t++) {
      arena.reset();
      curve_cost(rows, {s.data() + t * ns, u.data() + t * nu, c.data() + t * k},
                 w.data() + t * nterm, nullptr, nullptr, h.data() + t * width * width,
                 static_cast<int>(width), arena);
    }
  });
}

// Writes the norms of rows (n, k), without rows that are NaN; slopes and curvatures (n, k) and
// bends (n) unless they are None.
void norm_into(const std::string& kind, double p, double q, nb::handle rows, nb::handle values,
               nb::handle slopes, nb::handle curvatures, nb::handle bends) {
  const Py_ssize_t n = size_of(rows);
  const Py_ssize_t k = n ? size_of(nb::object(rows[0])) : 0;
  Array r(rows, "rows", {n, k}, false), out(values, "values", {n}, true),
      g(slopes, "slopes", {n, k}, true), c(curvatures, "curvatures", {n, k}, true),
      b(bends, "bends", {n}, true);
  const Norm norm{norm_kind(kind), p, q};
  std::vector<double> on(k), slope(k), curvature(k);
  for (Py_ssize_t t = 0; t < n; t++) {
    int count = 0;
    for (Py_ssize_t i = 0; i < k; i++) {
      const double value = r.data()[t * k + i];
      if (value == value) on[count++] = value;
    }
    double bend;
    out.data()[t] = norm.expand(on.data(), count, slope.data(), curvature.data(), bend);
    if (!g.data()) continue;
    count = 0;
    b.data()[t] = bend;
    for (Py_ssize_t i = 0; i < k; i++) {
      const bool is_on = r.data()[t * k + i] == r.data()[t * k + i];
      g.data()[t * k + i] = is_on ? slope[count] : 0;
      c.data()[t * k + i] = is_on ? curvature[count] : 0;
      count += is_on;
    }
  }
}

}  // namespace

void bind_cost(nb::module_& module) {
  using nb::arg;
  nb::class_<CostRows>(module, "Cost")
      .def(nb::new_(&make_cost), arg("ns"), arg("nu"), arg("nx"), arg("rows"), arg("terms"),
           arg("operands"), arg("constants"), arg("nodes"))
      .def("evaluate_into", &evaluate_into, arg("sensordata"), arg("controls"), arg("offsets"),
           arg("norms"))
      .def("expand_into", &expand_into, arg("sensordata"), arg("controls"), arg("offsets"),
           arg("weights"), arg("C"), arg("D"), arg("gradient"), arg("hessian"))
      .def("rows_into", &rows_into, arg("sensordata"), arg("controls"), arg("offsets"),
           arg("values"), arg("gradients").none())
      .def("curve_into", &curve_into, arg("sensordata"), arg("controls"), arg("offsets"),
           arg("weights"), arg("hessian"));
  module.def("norm_into", &norm_into, arg("kind"), arg("p"), arg("q"), arg("rows"), arg("values"),
             arg("slopes").none(), arg("curvatures").none(), arg("bends").none());
}

}  // namespace mujacobian

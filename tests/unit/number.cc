// Dual numbers and packets: cpp/spatial/dual.h, cpp/spatial/packet.h and cpp/actuation/number.h.
#include "actuation/number.h"

#include <nanobind/operators.h>
#include <nanobind/stl/array.h>

#include <algorithm>
#include <array>

#include "primitives.h"
#include "spatial/packet.h"

namespace mujacobian {
namespace {

using Range = std::array<double, 2>;
using Derivatives = std::array<double, local::kCount>;

Derivatives derivatives(const Number& x) {
  Derivatives result;
  std::copy_n(x.d, local::kCount, result.begin());
  return result;
}

using Eight = std::array<double, Packet::kSize>;

template <int n>
std::array<double, n> stored(const Packet& x) {
  std::array<double, n> result;
  x.store<n>(result.data());
  return result;
}

void bind_packet(nanobind::module_& m) {
  namespace nb = nanobind;
  nb::class_<Packet>(m, "Packet")
      .def(nb::init<double>())
      .def_static("load", [](const Eight& x) { return Packet::load(x.data()); })
      .def("eight", &stored<8>)
      .def("six", &stored<6>)
      .def(nb::self + nb::self)
      .def(nb::self - nb::self)
      .def(nb::self * nb::self)
      .def(nb::self / nb::self)
      .def(-nb::self);
  m.def("sqrt", [](const Packet& x) { return sqrt(x); });
  m.def("value", [](const Packet& x) { return value(x); });
}

}  // namespace

void bind_number(nanobind::module_& m) {
  namespace nb = nanobind;
  m.attr("COUNT") = local::kCount;
  nb::class_<Number>(m, "Number")
      .def(nb::init<double>())
      .def_ro("v", &Number::v)
      .def_prop_ro("d", derivatives)
      .def(nb::self + nb::self)
      .def(nb::self - nb::self)
      .def(nb::self * nb::self)
      .def(nb::self / nb::self)
      .def(double() + nb::self)
      .def(nb::self + double())
      .def(double() - nb::self)
      .def(nb::self - double())
      .def(double() * nb::self)
      .def(double() / nb::self)
      .def(-nb::self);
  m.def("variable", [](double x, int k) { return variable<local::kCount>(x, k); });
  m.def("value", [](const Number& x) { return value(x); });
  m.def("value", [](double x) { return value(x); });
  m.def("sqrt", [](const Number& x) { return sqrt(x); });
  m.def("sin", [](const Number& x) { return sin(x); });
  m.def("cos", [](const Number& x) { return cos(x); });
  m.def("asin", [](const Number& x) { return asin(x); });
  m.def("atan2", [](const Number& y, const Number& x) { return atan2(y, x); });
  m.def("outside", [](double x, Range range) { return outside(x, range.data()); });
  m.def("clamp", [](double x, Range range) { return clamp(x, range.data()); });
  m.def("clamp", [](const Number& x, Range range) { return clamp(x, range.data()); });
  m.def("clamp", [](const Number& x, double limit) { return clamp(x, limit); });
  bind_packet(m);
}

}  // namespace mujacobian

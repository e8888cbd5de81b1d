// Rotations, quaternions and spatial vectors: cpp/spatial and cpp/rods/algebra.h.
#include "casters.h"
#include "primitives.h"
#include "rods/algebra.h"
#include "spatial/rotation.h"

namespace mujacobian {
namespace {

using Four = std::array<double, 4>;
using Ten = std::array<double, 10>;

double exp_coefficient_by_number(int k, double t) {
  switch (k) {
    case 0:
      return exp_coefficient<0>(t);
    case 1:
      return exp_coefficient<1>(t);
    case 2:
      return exp_coefficient<2>(t);
    case 3:
      return exp_coefficient<3>(t);
    case 4:
      return exp_coefficient<4>(t);
    case 5:
      return exp_coefficient<5>(t);
  }
  throw nanobind::value_error("k must be between 0 and 5");
}

void bind_rotation(nanobind::module_& m) {
  m.def("exp_coefficient", exp_coefficient_by_number);
  m.def("rotation_exp", rotation_exp);
  m.def("right_jacobian", right_jacobian);
  m.def("right_jacobian_inverse", right_jacobian_inverse);
  m.def("right_jacobian_inverse_change", right_jacobian_inverse_change);
  m.def("right_jacobian_transposed_change", right_jacobian_transposed_change);
  m.def("log_curvature", log_curvature);
  m.def("kappa_slope", kappa_slope);
  m.def("quaternion_difference",
        [](Four a, Four b) { return quaternion_difference(a.data(), b.data()); });
  m.def("quaternion_exp", quaternion_exp);
  m.def("quaternion_product", [](Quaternion a, Quaternion b) { return a * b; });
  m.def("conjugate", conjugate);
  m.def("normalized", normalized);
  m.def("rotation", rotation);
  m.def("rotate_back", rotate_back);
}

void bind_algebra(nanobind::module_& m) {
  m.def("dot", [](Vec3 a, Vec3 b) { return dot(a, b); });
  m.def("cross", [](Vec3 a, Vec3 b) { return cross(a, b); });
  m.def("norm", [](Vec3 a) { return norm(a); });
  m.def("unit", [](Vec3 a) { return unit(a); });
  m.def("skew", skew<double>);
  m.def("outer", outer<double>);
  m.def("column", [](const Mat3& a, int c) { return column(a, c); });
  m.def("transposed", [](const Mat3& a) { return transposed(a); });
  m.def("add", [](const Mat3& a, const Mat3& b) { return a + b; });
  m.def("scale", [](double s, const Mat3& a) { return s * a; });
  m.def("multiply", [](const Mat3& a, const Mat3& b) { return a * b; });
  m.def("apply", [](const Mat3& a, Vec3 b) { return a * b; });
  m.def("apply_transposed", [](const Mat3& a, Vec3 b) { return transpose_mul(a, b); });
  m.def("times_transposed", rods::times_transposed);
  m.def("transposed_times", rods::transposed_times);
  m.def("axial", rods::axial);
  m.def("turn", rods::turn);
  m.def("bend_of_arc", rods::bend_of_arc);
  m.def("orthonormal", rods::orthonormal);
}

void bind_motion(nanobind::module_& m) {
  m.def("power", [](Motion v, Force f) { return dot(v, f); });
  m.def("cross_motion", [](Motion v, Motion a) { return cross(v, a); });
  m.def("cross_force", [](Motion v, Force f) { return cross(v, f); });
  m.def("at_point", [](Motion v, Vec3 r) { return at_point(v, r); });
  m.def("about", [](Motion v, Vec3 r) { return about(v, r); });
  m.def("inertia_times", [](Ten i, Motion v) { return Inertia{i.data()} * v; });
  m.def("apply6", [](const Mat6& a, Motion v) { return a * v; });
  m.def("apply6_transposed", [](const Mat6& a, Motion v) { return transpose_mul(a, v); });
}

}  // namespace

void bind_spatial(nanobind::module_& m) {
  bind_rotation(m);
  bind_algebra(m);
  bind_motion(m);
}

}  // namespace mujacobian

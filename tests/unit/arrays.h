// NumPy arrays that functions of the core read and write in place.
#pragma once

#include <nanobind/ndarray.h>

namespace mujacobian {

using Vector =
    nanobind::ndarray<double, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Matrix =
    nanobind::ndarray<double, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
using Indices =
    nanobind::ndarray<int, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Flags = nanobind::ndarray<bool, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

// The number of rows and the distance between rows.
inline int rows(const Matrix& a) { return static_cast<int>(a.shape(0)); }
inline int stride(const Matrix& a) { return static_cast<int>(a.shape(1)); }
inline int size(const Vector& a) { return static_cast<int>(a.shape(0)); }

}  // namespace mujacobian

// Conversions between Python lists of floats and the small structs of cpp/spatial. Matrices are
// flat lists, by rows.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>

#include <array>
#include <cstring>
#include <type_traits>

#include "spatial/matrix6.h"
#include "spatial/quaternion.h"
#include "spatial/vector.h"

namespace nanobind::detail {

template <class T>
struct flat_caster {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(double) == 0);
  using Flat = std::array<double, sizeof(T) / sizeof(double)>;
  NB_TYPE_CASTER(T, const_name("list[float]"))

  bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<Flat> flat;
    if (!flat.from_python(source, flags, cleanup)) return false;
    std::memcpy(&value, &flat.value, sizeof(T));
    return true;
  }
  static handle from_cpp(const T& from, rv_policy policy, cleanup_list* cleanup) noexcept {
    Flat flat;
    std::memcpy(&flat, &from, sizeof(T));
    return make_caster<Flat>::from_cpp(flat, policy, cleanup);
  }
};

template <>
struct type_caster<mujacobian::Vec3> : flat_caster<mujacobian::Vec3> {};
template <>
struct type_caster<mujacobian::Mat3> : flat_caster<mujacobian::Mat3> {};
template <>
struct type_caster<mujacobian::Mat6> : flat_caster<mujacobian::Mat6> {};
template <>
struct type_caster<mujacobian::Motion> : flat_caster<mujacobian::Motion> {};
template <>
struct type_caster<mujacobian::Force> : flat_caster<mujacobian::Force> {};
template <>
struct type_caster<mujacobian::Quaternion> : flat_caster<mujacobian::Quaternion> {};

}  // namespace nanobind::detail

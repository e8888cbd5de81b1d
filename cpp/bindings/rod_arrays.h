// Arrays of Python from which rods and bodies are read, and to which they are written.
#pragma once

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <string>
#include <vector>

#include "bindings/arguments.h"
#include "spatial/vector.h"

namespace mujacobian {

using Doubles = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const int, nb::c_contig, nb::device::cpu>;
template <class T>
using Maybe = std::optional<T>;

// Returns the data of an array, and raises if its number of entries is wrong
template <class A>
auto* data(const A& array, size_t size) {
  if (array.size() != size) {
    raise_argument("an array has " + std::to_string(array.size()) + " entries, not " +
                   std::to_string(size));
  }
  return array.data();
}
template <class A>
auto data(const Maybe<A>& array, size_t size) -> decltype(data(*array, size)) {
  return array ? data(*array, size) : nullptr;
}

inline std::vector<Vec3> vectors(const Numbers& a) {
  std::vector<Vec3> all;
  for (size_t i = 0; i + 2 < a.size(); i += 3) all.push_back(load3(a.data() + i));
  return all;
}
inline std::vector<Mat3> matrices(const Numbers& a) {
  std::vector<Mat3> all;
  for (size_t i = 0; i + 8 < a.size(); i += 9) all.push_back(load9(a.data() + i));
  return all;
}

}  // namespace mujacobian

// Lookup in constexpr tables whose rows are identified by an integer or an enumerator.
#pragma once

#include <array>
#include <cstddef>

namespace mujacobian {

// Returns the row number of each key below kKeys, -1 for keys without a row. The order of the rows
// has no meaning. Two rows with the same key, or a key out of range, do not compile.
template <int kKeys, class Row, std::size_t kRows, class Key>
consteval std::array<signed char, kKeys> index_rows(const Row (&rows)[kRows], Key Row::* key) {
  static_assert(kRows < 128);
  std::array<signed char, kKeys> index{};
  for (signed char& row : index) row = -1;
  for (std::size_t r = 0; r < kRows; r++) {
    const int k = static_cast<int>(rows[r].*key);
    if (k < 0 || k >= kKeys) throw "key out of range";
    if (index[k] >= 0) throw "two rows have the same key";
    index[k] = static_cast<signed char>(r);
  }
  return index;
}

// Returns whether every key has a row.
template <std::size_t kKeys>
consteval bool is_complete(const std::array<signed char, kKeys>& index) {
  for (signed char row : index) {
    if (row < 0) return false;
  }
  return true;
}

}  // namespace mujacobian

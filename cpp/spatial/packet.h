// Packets: eight numbers side by side, so that a formula is evaluated for eight inputs at once. A
// double converts to a packet of equal numbers. `value` returns the first number: a formula may
// branch on it only if the branch is the same for all inputs.
#pragma once

#include <cmath>
#include <cstring>

#include "linear/lanes.h"

namespace mujacobian {

struct Packet {
  static constexpr int kSize = 2 * kLanes;
  Lanes first, second;

  Packet() = default;
  Packet(double x) : first(broadcast(x)), second(first) {}
  Packet(Lanes a, Lanes b) : first(a), second(b) {}

  friend Packet operator+(const Packet& a, const Packet& b) {
    return {a.first + b.first, a.second + b.second};
  }
  friend Packet operator-(const Packet& a, const Packet& b) {
    return {a.first - b.first, a.second - b.second};
  }
  friend Packet operator*(const Packet& a, const Packet& b) {
    return {a.first * b.first, a.second * b.second};
  }
  friend Packet operator/(const Packet& a, const Packet& b) {
    return {a.first / b.first, a.second / b.second};
  }
  friend Packet operator-(const Packet& a) { return {-a.first, -a.second}; }
  friend Packet sqrt(const Packet& a) {
    double x[kSize];
    a.store<kSize>(x);
    for (double& number : x) number = std::sqrt(number);
    return load(x);
  }
  friend double value(const Packet& a) { return a.first[0]; }

  static Packet load(const double* p) { return {load_lanes(p), load_lanes(p + kLanes)}; }
  // Stores the first n numbers.
  template <int n>
    requires(n > kLanes && n <= kSize)
  void store(double* p) const {
    store_lanes(p, first);
    std::memcpy(p + kLanes, &second, (n - kLanes) * sizeof(double));
  }
};

}  // namespace mujacobian

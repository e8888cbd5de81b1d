// SIMD vectors of four doubles.
#pragma once

#include <cstring>

namespace mujacobian {

// GCC and Clang translate their vector extension into AVX registers, or into pairs of NEON
// registers on ARM. For other compilers and processors, a struct has the same operators.
#if (defined(__GNUC__) || defined(__clang__)) && (defined(__AVX__) || defined(__aarch64__))
typedef double Lanes __attribute__((vector_size(32)));
#else
struct Lanes {
  double v[4];

  double operator[](int i) const { return v[i]; }

  Lanes& operator+=(Lanes b) {
    for (int i = 0; i < 4; i++) v[i] += b.v[i];
    return *this;
  }
  Lanes& operator-=(Lanes b) {
    for (int i = 0; i < 4; i++) v[i] -= b.v[i];
    return *this;
  }
  Lanes& operator*=(Lanes b) {
    for (int i = 0; i < 4; i++) v[i] *= b.v[i];
    return *this;
  }
  friend Lanes operator+(Lanes a, Lanes b) { return a += b; }
  friend Lanes operator-(Lanes a, Lanes b) { return a -= b; }
  friend Lanes operator*(Lanes a, Lanes b) { return a *= b; }
  friend Lanes operator/(Lanes a, Lanes b) {
    for (int i = 0; i < 4; i++) a.v[i] /= b.v[i];
    return a;
  }
  friend Lanes operator-(Lanes a) { return a * -1.0; }
  friend Lanes operator*(Lanes a, double s) { return a *= Lanes{s, s, s, s}; }
};
#endif

inline constexpr int kLanes = 4;

inline int round_to_lanes(int n) { return (n + kLanes - 1) / kLanes * kLanes; }
inline int round_to_line(int n) { return (n + 7) / 8 * 8; }  // 64 bytes

inline Lanes load_lanes(const double* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store_lanes(double* p, Lanes v) { std::memcpy(p, &v, sizeof v); }
inline Lanes broadcast(double s) { return Lanes{s, s, s, s}; }

// Calls tile.operator()<n>(column) so that tiles of n vectors cover columns first .. last-1. A tile
// may begin before `first` and end after `last`, so rows must be padded to whole lanes.
template <class F>
inline void visit_tiles(int first, int last, F tile) {
  int column = first / kLanes * kLanes;
  int count = round_to_lanes(last - column) / kLanes;
  auto take = [&]<int n>() {
    for (; count >= n; count -= n, column += n * kLanes) tile.template operator()<n>(column);
  };
  take.template operator()<12>();
  take.template operator()<6>();
  take.template operator()<3>();
  take.template operator()<1>();
}

}  // namespace mujacobian

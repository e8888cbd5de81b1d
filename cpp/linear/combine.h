// Linear combinations of a few rows, which are padded to whole lanes.
#pragma once

#include "linear/lanes.h"

namespace mujacobian {

// The largest number of rows that can be combined.
inline constexpr int kMaxCombined = 6;

// The coefficients of linear combinations: number i takes scale * c[i * next + r * step] of row r.
struct Coefficients {
  const double* c;
  int next, step;
  double scale = 1;
};

// Computes `tile` vectors of all combinations. The rows stay in registers.
template <bool add, int count, int tile>
inline void combine_tile(double* out, int combinations, Coefficients c, const double* x,
                         int stride) {
  Lanes row[count][tile];
  for (int r = 0; r < count; r++)
    for (int t = 0; t < tile; t++) row[r][t] = load_lanes(x + r * stride + t * kLanes);
  for (int i = 0; i < combinations; i++, out += stride, c.c += c.next) {
    Lanes sum[tile];
    for (int t = 0; t < tile; t++) sum[t] = add ? load_lanes(out + t * kLanes) : Lanes{};
    for (int r = 0; r < count; r++) {
      const Lanes factor = broadcast(c.scale * c.c[r * c.step]);
      for (int t = 0; t < tile; t++) sum[t] += factor * row[r][t];
    }
    for (int t = 0; t < tile; t++) store_lanes(out + t * kLanes, sum[t]);
  }
}

// Computes all columns of all combinations.
template <bool add, int count>
inline void combine_counted(double* out, int combinations, Coefficients c, const double* x,
                            int stride) {
  constexpr int kTile = 3;
  int k = 0;
  for (; k + kTile * kLanes <= stride; k += kTile * kLanes) {
    combine_tile<add, count, kTile>(out + k, combinations, c, x + k, stride);
  }
  for (; k < stride; k += kLanes) {
    combine_tile<add, count, 1>(out + k, combinations, c, x + k, stride);
  }
}

// out_i = (add ? out_i : 0) + sum_r scale c_ir x_r for a number of combinations i of the rows x_r.
// All rows have length `stride`. There are `count` rows x_r, at most kMaxCombined.
template <bool add>
inline void combine_rows(double* out, int combinations, Coefficients c, const double* x, int count,
                         int stride) {
  switch (count) {
    case 1:
      return combine_counted<add, 1>(out, combinations, c, x, stride);
    case 2:
      return combine_counted<add, 2>(out, combinations, c, x, stride);
    case 3:
      return combine_counted<add, 3>(out, combinations, c, x, stride);
    case 4:
      return combine_counted<add, 4>(out, combinations, c, x, stride);
    case 5:
      return combine_counted<add, 5>(out, combinations, c, x, stride);
    case kMaxCombined:
      return combine_counted<add, kMaxCombined>(out, combinations, c, x, stride);
  }
}

}  // namespace mujacobian

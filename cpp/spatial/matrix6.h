// 6x6 matrices that map motions to forces.
#pragma once

#include "spatial/vector.h"

namespace mujacobian {

struct Mat6 {
  double m[36];  // row-major, angular rows and columns first
  double& operator()(int r, int c) { return m[6 * r + c]; }
  double operator()(int r, int c) const { return m[6 * r + c]; }
};

inline Mat6& operator+=(Mat6& a, const Mat6& b) {
  for (int i = 0; i < 36; i++) a.m[i] += b.m[i];
  return a;
}

inline Force operator*(const Mat6& a, Motion v) {
  const double x[6] = {v.ang.x, v.ang.y, v.ang.z, v.lin.x, v.lin.y, v.lin.z};
  double y[6] = {};
  for (int r = 0; r < 6; r++)
    for (int c = 0; c < 6; c++) y[r] += a.m[6 * r + c] * x[c];
  return {load3(y), load3(y + 3)};
}

// a^T v
inline Force transpose_mul(const Mat6& a, Motion v) {
  const double x[6] = {v.ang.x, v.ang.y, v.ang.z, v.lin.x, v.lin.y, v.lin.z};
  double y[6] = {};
  for (int r = 0; r < 6; r++)
    for (int c = 0; c < 6; c++) y[c] += a.m[6 * r + c] * x[r];
  return {load3(y), load3(y + 3)};
}

}  // namespace mujacobian

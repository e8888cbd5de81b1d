#include "rods/grid.h"

#include <algorithm>
#include <cmath>

#include "rods/algebra.h"

namespace mujacobian::rods {
namespace {

constexpr int kRim = 2;  // cells at each side in which the spline lacks coefficients

// Weights of the four coefficients around a point, and their derivatives
struct Weights {
  double value[4], first[4], second[4];

  explicit Weights(double t) {
    const double s = 1 - t;
    value[0] = s * s * s / 6, value[3] = t * t * t / 6;
    value[1] = (4 + 3 * t * t * (t - 2)) / 6, value[2] = (4 + 3 * s * s * (s - 2)) / 6;
    first[0] = -s * s / 2, first[3] = t * t / 2;
    first[1] = t * (3 * t - 4) / 2, first[2] = -s * (3 * s - 4) / 2;
    second[0] = s, second[1] = 3 * t - 2, second[2] = 3 * s - 2, second[3] = t;
  }
};

}  // namespace

Grid::Grid(Vec3 origin, double cell, std::array<int, 3> counts, const double* samples, double reach)
    : origin_(origin), cell_(cell), counts_(counts), reach_(reach) {
  const std::size_t size = static_cast<std::size_t>(counts[0]) * counts[1] * counts[2];
  coefficients_.assign(samples, samples + size);
  // coefficients (8 f_i - f_(i-1) - f_(i+1)) / 6 along each direction
  std::ptrdiff_t stride = 1;
  for (int axis = 2; axis >= 0; axis--) {
    std::vector<double> line(counts[axis]);
    for (std::size_t begin = 0; begin < size; begin++) {
      if (static_cast<int>(begin / stride) % counts[axis] != 0) continue;
      for (int i = 0; i < counts[axis]; i++) line[i] = coefficients_[begin + i * stride];
      for (int i = 1; i + 1 < counts[axis]; i++) {
        coefficients_[begin + i * stride] = (8 * line[i] - line[i - 1] - line[i + 1]) / 6;
      }
    }
    stride *= counts[axis];
  }
}

Distance Grid::spline(const double at[3]) const {
  int first[3];
  double fraction[3];
  for (int k = 0; k < 3; k++) {
    const int cell = std::min(static_cast<int>(at[k]), counts_[k] - kRim - 2);
    first[k] = cell - 1, fraction[k] = at[k] - cell;
  }
  const Weights x(fraction[0]), y(fraction[1]), z(fraction[2]);
  double value = 0, gradient[3] = {};
  Mat3 second{};
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 4; j++) {
      const std::size_t row = static_cast<std::size_t>(first[0] + i) * counts_[1] + (first[1] + j);
      const double* c = &coefficients_[row * counts_[2] + first[2]];
      double sum = 0, slope = 0, bend = 0;
      for (int k = 0; k < 4; k++) {
        sum += c[k] * z.value[k], slope += c[k] * z.first[k], bend += c[k] * z.second[k];
      }
      const double xy = x.value[i] * y.value[j];
      value += xy * sum;
      gradient[0] += x.first[i] * y.value[j] * sum;
      gradient[1] += x.value[i] * y.first[j] * sum;
      gradient[2] += xy * slope;
      second(0, 0) += x.second[i] * y.value[j] * sum;
      second(1, 1) += x.value[i] * y.second[j] * sum;
      second(2, 2) += xy * bend;
      second(0, 1) += x.first[i] * y.first[j] * sum;
      second(0, 2) += x.first[i] * y.value[j] * slope;
      second(1, 2) += x.value[i] * y.first[j] * slope;
    }
  }
  second(1, 0) = second(0, 1), second(2, 0) = second(0, 2), second(2, 1) = second(1, 2);
  return {value, (1 / cell_) * load3(gradient), (1 / (cell_ * cell_)) * second};
}

Distance Grid::distance(Vec3 p) const {
  double at[3], inside[3];
  store3(at, (1 / cell_) * (p - origin_));
  bool is_outside = false;
  for (int k = 0; k < 3; k++) {
    const double high = counts_[k] - 1 - kRim;
    inside[k] = at[k] >= kRim ? std::min(at[k], high) : kRim;  // also if it is not a number
    is_outside |= inside[k] != at[k];
  }
  Distance d = spline(inside);
  if (!is_outside) return d;
  // directions in which the nearest point of the grid moves with p
  Mat3 follows{}, free{};
  for (int k = 0; k < 3; k++) (inside[k] == at[k] ? follows : free)(k, k) = 1;
  const Vec3 offset = cell_ * (load3(at) - load3(inside));
  const double apart = norm(offset);
  const Vec3 away = (1 / apart) * offset;
  return {d.value + apart, follows * d.normal + away,
          follows * d.curvature * follows + (1 / apart) * difference(free, outer(away, away))};
}

}  // namespace mujacobian::rods

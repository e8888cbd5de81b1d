// A solid whose signed distance is a smooth function of samples on a grid.
#pragma once

#include <array>
#include <vector>

#include "rods/shape.h"

namespace mujacobian::rods {

// A cubic B-spline in each direction, with continuous second derivatives (ROD-53). Outside the
// grid, it is the value at the nearest point of the grid plus the distance from this point.
class Grid : public Shape {
 public:
  // `samples` (counts[0], counts[1], counts[2]) are distances at origin + cell (i, j, k)
  Grid(Vec3 origin, double cell, std::array<int, 3> counts, const double* samples, double reach);
  Distance distance(Vec3 p) const override;
  double reach() const override { return reach_; }

 private:
  // Value, gradient and second derivative of the spline, in cells from the origin
  Distance spline(const double at[3]) const;

  Vec3 origin_;
  double cell_;
  std::array<int, 3> counts_;
  std::vector<double> coefficients_;
  double reach_;
};

}  // namespace mujacobian::rods

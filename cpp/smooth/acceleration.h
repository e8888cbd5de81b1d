// Distance between the acceleration of mj_step and the one whose derivative is taken.
#pragma once

#include <algorithm>
#include <cmath>

namespace mujacobian {

// Change of a velocity in one step, in m/s or rad/s, that is rounding beside forces that cancel.
constexpr double kNegligibleChange = 1e-9;

// The distance over some dofs that move together, relative to their largest acceleration (SOL-3).
class AccelerationDistance {
 public:
  // Add a dof with MuJoCo's qacc and qacc_smooth, and the acceleration that is differentiated.
  void add(double qacc, double qacc_smooth, double converged) {
    distance_ = std::fmax(distance_, std::abs(qacc - converged));
    scale_ = std::max({scale_, std::abs(qacc), std::abs(qacc_smooth)});
  }
  double relative(double timestep) const {
    return distance_ * timestep > kNegligibleChange ? distance_ / scale_ : 0;
  }

 private:
  double distance_ = 0, scale_ = 0;
};

}  // namespace mujacobian

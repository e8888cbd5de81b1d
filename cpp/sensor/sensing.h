// One state as its sensors see it. What several of them need is evaluated once, by the first.
#pragma once

#include "constraint/force_derivative.h"
#include "sensor/rows.h"

namespace mujacobian {

class Sensing {
 public:
  Sensing(const ModelView& model, const DataView& data, const Forward& forward, Arena& scratch)
      : m(model), d(data), f(forward), arena(scratch) {}

  const ModelView& m;
  const DataView& d;
  const Forward& f;
  Arena& arena;

  // At the constrained acceleration, the world accelerating by minus gravity as MuJoCo's cacc has
  // it.
  const MotionSweep& motion();

  // Momentum of everything below each body, about the reference point of its tree; of the world
  // the linear part only.
  const Force* momentum();

  // The tendon's path, with the derivative of its moment.
  const Path& tendon(int t);

  // The forces of all enabled actuators.
  const ActuatorForces& actuators();

  // Rows per dof: d(qfrc_actuator), but for limits and gravity compensation; d(qfrc_gravcomp).
  const Residual& actuator_force();
  const Residual& gravity_compensation();

  // Derivative of the forces of block k.
  const ForceDerivative& force(int k);

  // Row r += sum_i weight_i d(force_i of block k), one weight per row of the block.      (ROW-12)
  void add_force(SensorRows& rows, int r, int k, const double* weight);

 private:
  MotionSweep motion_{nullptr, nullptr};
  Force* momentum_ = nullptr;
  Path* tendon_ = nullptr;
  ActuatorForces actuators_{nullptr, -1};
  Residual *actuator_force_ = nullptr, *gravity_compensation_ = nullptr;
  BlockMotion block_motion_{};
  ForceDerivative** force_ = nullptr;
};

}  // namespace mujacobian

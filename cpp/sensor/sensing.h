// One state as its sensors see it. What several of them need is evaluated once, by the first.
#pragma once

#include "constraint/force_derivative.h"
#include "constraint/wrench.h"
#include "forces/external.h"
#include "sensor/rows.h"
#include "tree/composite.h"

namespace mujacobian {

// Forces between the bodies and their parents, but for constraints and tendons.
struct SubtreeForces {
  const Composite* inertial;  // at the constrained acceleration
  const WrenchSum* applied;   // xfrc_applied, null where there is none
};

// The force along a spatial tendon, of all that acts on it, and its derivative.
struct Tension {
  double value;
  SensorRows derivative;
};

// Changes of the forces of all blocks at fixed state and acceleration that sensors are to see.
struct DirectForces {
  int count;
  const double* change;  // (blocks, count, kMaxRows)
};

class Sensing {
 public:
  Sensing(const ModelView& model, const DataView& data, const ForwardDynamics& forward,
          const DirectForces& direct, Arena& scratch);

  const ModelView& m;
  const DataView& d;
  const ForwardDynamics f;  // its blocks with the forces after the sweeps of noslip
  const DirectForces direct;
  Arena& arena;

  // At the constrained acceleration, the world accelerating by minus gravity as MuJoCo's cacc has
  // it.
  const MotionSweep& motion();

  // The same without gravity and joint accelerations.
  const MotionSweep& still_motion();

  // Momentum of everything below each body, about the reference point of its tree; of the world
  // the linear part only.
  const Force* momentum();

  // The tendon's path, with the derivative of its moment.
  const Path& tendon(int t);

  // The force along a spatial tendon.                                                  (SEN-20)
  const Tension& tension(int t);

  // What the bodies under each body and xfrc_applied ask of its parent.
  const SubtreeForces& subtree_forces();

  // The forces of all enabled actuators.
  const ActuatorForces& actuators();

  // Rows per dof: d(qfrc_actuator), but for limits and gravity compensation; d(qfrc_gravcomp).
  const DofRows& actuator_force();
  const DofRows& gravity_compensation();

  // Derivative of the forces of block k, before the sweeps of noslip.
  const ForceDerivative& force(int k);

  // Wrench of block k, which has one, and the motion of its contact with each of its dofs.
  const BlockWrench& wrench(int k);
  const ContactVariation* variations(int k);

  // Row r += sum_i weight_i d(force_i of block k), one weight per row of the block.      (ROW-12)
  void add_force(SensorRows& rows, int r, int k, const double* weights);

 private:
  // Row r += sum_i weight_i d(force_i of block k) over the rows that noslip sweeps; their weights
  // become zero.                                                                         (SLIP-7)
  void add_swept(SensorRows& rows, int r, int k, double* weight);

  // The part of add_force that comes from the metric of the discrete integrator.         (DIS-8)
  void add_correction(SensorRows& rows, int r, const Block& block, const double* weight);

  const Blocks solved_;  // with the forces of the optimum
  MotionSweep motion_{nullptr, nullptr}, still_{nullptr, nullptr};
  SubtreeForces subtree_forces_{nullptr, nullptr};
  Tension** tension_ = nullptr;
  Force* momentum_ = nullptr;
  Path* tendon_ = nullptr;
  ActuatorForces actuators_{nullptr, -1};
  DofRows *actuator_force_ = nullptr, *gravity_compensation_ = nullptr;
  BlockMotion block_motion_{};
  DiagonalRates* diagonal_rates_ = nullptr;
  ForceDerivative** force_ = nullptr;
  BlockWrench** wrench_ = nullptr;
  const ContactVariation** variations_ = nullptr;
};

}  // namespace mujacobian

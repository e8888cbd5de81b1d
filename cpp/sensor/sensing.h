// Quantities of one state that several sensors read. The first sensor that needs one evaluates it.
#pragma once

#include "actuation/curvature.h"
#include "constraint/force_derivative.h"
#include "constraint/wrench.h"
#include "forces/external.h"
#include "sensor/rows.h"
#include "tree/composite.h"

namespace mujacobian {

// Forces between the bodies and their parents, without those of constraints and tendons.
struct SubtreeForces {
  const Composite* inertial;  // at the constrained acceleration
  const WrenchSum* applied;   // xfrc_applied, null if there is none
};

// The sum of all forces along a spatial tendon, and its derivative.
struct Tension {
  double value;
  SensorRows derivative;
};

// Changes of the forces of all blocks at fixed state and acceleration, which sensors of forces add
// to their rows.
struct DirectForces {
  int count;
  const double* change;  // (blocks, count, kMaxRows)
};

// Second derivatives of the forces of actuators with one output.
struct ActuatorCurvatures {
  PathCurvature* curvature;
  int count;
};

class Sensing {
 public:
  Sensing(const ModelView& model, const DataView& data, const ForwardDynamics& forward,
          const DirectForces& direct, Arena& scratch);

  const ModelView& m;
  const DataView& d;
  const ForwardDynamics f;  // its blocks have the forces after the sweeps of noslip
  const DirectForces direct;
  Arena& arena;

  // Motion at the constrained acceleration. The world accelerates by minus gravity, as in MuJoCo's
  // cacc.
  const MotionSweep& motion();

  // Motion without gravity and joint accelerations.
  const MotionSweep& still_motion();

  // Momentum of each body's subtree about the reference point of its tree. Only the linear part is
  // valid for the world.
  const Force* momentum();

  // The tendon's path, with the derivative of its moment.
  const Path& tendon(int t);

  // The force along a spatial tendon.                                                  (SEN-20)
  const Tension& tension(int t);

  // The force that the subtree of each body needs from the body's parent.
  const SubtreeForces& subtree_forces();

  // The forces of all enabled actuators.
  const ActuatorForces& actuators();

  // The second derivatives of these forces that are not zero.
  const ActuatorCurvatures& actuator_curvatures();

  // Rows per dof: d(qfrc_actuator) without limits and gravity compensation; d(qfrc_gravcomp).
  const DofRows& actuator_force();
  const DofRows& gravity_compensation();

  // The motion of all blocks at the acceleration that solves the equation of motion.
  const BlockMotion& block_motion();

  // The derivative of the forces of block k before the sweeps of noslip.
  const ForceDerivative& force(int k);

  // The wrench of block k, and the motion of its contact with each of its dofs.
  const BlockWrench& wrench(int k);
  const ContactVariation* variations(int k);

  // Adds sum_i weight_i d(force_i of block k) to row r, with one weight per row of the block.
  // (ROW-12)
  void add_force(SensorRows& rows, int r, int k, const double* weights);

 private:
  // The same for the rows that noslip sweeps. Sets their weights to zero.                 (SLIP-7)
  void add_swept(SensorRows& rows, int r, int k, double* weight);

  // Adds the part of add_force that comes from the metric of the discrete integrator.    (DIS-8)
  void add_correction(SensorRows& rows, int r, const Block& block, const double* weight);

  const Blocks solved_;  // blocks with the forces of the optimum
  MotionSweep motion_{nullptr, nullptr}, still_{nullptr, nullptr};
  SubtreeForces subtree_forces_{nullptr, nullptr};
  Tension** tension_ = nullptr;
  Force* momentum_ = nullptr;
  Path* tendon_ = nullptr;
  ActuatorForces actuators_{nullptr, -1};
  ActuatorCurvatures actuator_curvatures_{nullptr, -1};
  DofRows *actuator_force_ = nullptr, *gravity_compensation_ = nullptr;
  BlockMotion block_motion_{};
  DiagonalRates* diagonal_rates_ = nullptr;
  ForceDerivative** force_ = nullptr;
  BlockWrench** wrench_ = nullptr;
  const ContactVariation** variations_ = nullptr;
};

// Returns the force along a spatial tendon and adds its derivative to row 0.             (SEN-20)
double sense_tension(Sensing& s, int tendon, SensorRows& rows);

}  // namespace mujacobian

// Columns of single parameters, by the place where they enter: inertia, forces, constraint rows.
#pragma once

#include "adjoint/parameter.h"

namespace mujacobian {

// The columns of one parameter, one number per dof. Functions add to them. With the discrete
// integrator `early` and `late` are the same array. The last two arrays are null if the metric of
// that integrator corrects no row.                                                         (DIS-8)
struct Column {
  double *early, *late;
  double* inertia = nullptr;  // changes of the diagonal of M
  double* added = nullptr;    // changes of the diagonal that the metric adds to M
};

// A motion of all bodies for which inverse dynamics is evaluated, and its weight in a column.
struct Pass {
  DataView d;  // with the velocities of the motion
  MotionSweep motion;
  double weight;
};

// The evaluations of inverse dynamics for the early and the late column of an inertial parameter.
struct Passes {
  Pass early;
  Pass late[3];
  int late_count;
  // late[kBias], ... apply only to trees that the integrator solves with a block of their own
  static constexpr int kBias = 1;
  int count(bool block) const { return block ? late_count : kBias; }
};
Passes make_passes(const ModelView& m, const DataView& d, const StepDifferential& s, Arena& arena);

// Returns whether the integrator solves the tree of the body with a block of its own.
bool in_block(const ModelView& m, const StepDifferential& s, int body);

// Adds the columns of a body's inertia, with a weight for each component of kInertial.
void add_inertial(const ModelView& m, const StepDifferential& s, const Passes& passes, int body,
                  const double* components, const Column& column);

// Returns the force that a unit of one component of the body's inertia needs, about the reference
// point of the body's tree: I A + V x* I V                                                 (PAR-1)
Force inertial_force(const ModelView& m, const DataView& d, int body, int component,
                     const Motion& acceleration);

// The step whose columns are computed. Parts that several parameters share are computed on first
// use.
class ColumnContext {
 public:
  ColumnContext(const ModelView& model, const DataView& data, const StepDifferential& step,
                Arena& scratch)
      : m(model), d(data), s(step), arena(scratch) {}
  const Passes& passes();
  const ActuatorForces& actuators();

  const ModelView& m;
  const DataView& d;
  const StepDifferential& s;
  Arena& arena;

 private:
  Passes passes_{};
  ActuatorForces actuators_{nullptr, -1};
};

// Throws Unsupported with the reason if the joint of the parameter is no hinge or slide.
void require_single_dof(const ModelView& m, const Parameter& p, const char* reason);

// The changes of an actuator's force, after its limits, and of its damping and stiffness in the
// integrator's matrix, per unit of a gain or bias, with their derivatives with respect to the
// variables of the actuator.
struct ActuatorChange {
  int index;  // of the actuator among all forces; -1: it is disabled
  Number force, damping, stiffness;
};
ActuatorChange actuator_change(const ModelView& m, const DataView& d, const ActuatorForces& all,
                               const Parameter& p);

// Writes the changes of the forces of a block at fixed acceleration, per unit of a constant.
// `motion` belongs to the acceleration at which the forces were computed. (PAR-17)
void constant_change(const ModelView& m, const DataView& d, const Block& block, const Parameter& p,
                     const BlockMotion& motion, double change[kMaxRows], Arena& arena);

// Numbers of a contact that determine its forces: friction (5 components), solref (2),
// solreffriction (2), solimp (5).
enum class ContactNumber { kFriction, kSolref, kFrictionSolref, kSolimp };

// Writes the changes of the forces of a contact at fixed acceleration `acc`, per unit of one of its
// numbers.                                                                       (PAR-7 to PAR-11)
void contact_number_change(const ModelView& m, const DataView& d, const Block& block,
                           const double* acc, ContactNumber number, int component,
                           double change[kMaxRows]);

// Returns the derivative of the impedance of a row with respect to component k of solimp. (PAR-10)
double impedance_slope(const double solimp[5], double gap, int k);

// Returns the derivative of the largest impedance that solimp allows with respect to component k.
double largest_impedance_slope(const double solimp[5], int k);

// Changes of the stiffness and the damping of a row for changes d0 and d1 of its solref and dtop of
// the largest impedance, `top`.                                                          (PAR-11)
struct SpringChange {
  double stiffness, damping;
};
SpringChange spring_change(const ModelView& m, const double ref[2], double d0, double d1,
                           double top, double dtop);

// Adds J^T change to a column, for changes of the forces of a block.
void add_force(const Block& b, const double change[kMaxRows], double* column);

// Returns the direction in which the anchor of a connect moves.
Vec3 anchor_motion(const ModelView& m, const DataView& d, const Parameter& p);

}  // namespace mujacobian

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
  const Motion* acceleration;
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

void add_gravity(const ModelView& m, const DataView& d, int component, const Column& column);
void add_armature(const StepDifferential& s, int dof, const Column& column);

// Adds the column of a pose or size of a geom, on which only contacts depend.
void add_geom(const ModelView& m, const DataView& d, const StepDifferential& s, const Parameter& p,
              const Column& column, Arena& arena);

// The changes of the force along a path, and of its damping and stiffness in the integrator's
// matrix.
struct PathChange {
  const Path& path;
  double force, damping, stiffness;
};

// Adds the columns of springs, dampers and actuators.
class ForceColumns {
 public:
  ForceColumns(const ModelView& m, const DataView& d, const StepDifferential& s, Arena& arena)
      : m_(m), d_(d), s_(s), arena_(arena) {}
  void add_damping(int dof, const Column& column) const;
  void add_spring(const Parameter& p, const Column& column) const;
  void add_tendon(const Parameter& p, const Column& column) const;
  void add_actuator(const Parameter& p, const Column& column);

 private:
  void add_stiffness(int joint, const Column& column) const;
  void add_spring_to_metric(int joint, const Column& column, double k) const;
  void add_path(const PathChange& change, const unsigned char* frozen, const Column& column) const;
  void add_to_metric(const PathChange& change, const Column& column) const;

  const ModelView& m_;
  const DataView& d_;
  const StepDifferential& s_;
  Arena& arena_;
  ActuatorForces actuators_{nullptr, -1};
};

// The changes of an actuator's force, after its limits, and of its damping and stiffness in the
// integrator's matrix, per unit of a gain or bias.
struct ActuatorChange {
  int index;  // of the actuator among all forces; -1: it is disabled
  double force, damping, stiffness;
};
ActuatorChange actuator_change(const ModelView& m, const DataView& d, const ActuatorForces& all,
                               const Parameter& p);

// Returns why a gain or bias of an actuator is not supported as a parameter, null if it is.
const char* actuator_parameter_refusal(const ModelView& m, const Parameter& p);

// Adds the column of a constant that mj_setConst derives and that constraints read (is_constant).
void add_constant(const ModelView& m, const DataView& d, const StepDifferential& s,
                  const Parameter& p, const Column& column, Arena& arena);

// Writes the changes of the forces of a block at fixed acceleration, per unit of a constant.
// `motion` belongs to the acceleration at which the forces were computed. (PAR-17)
void constant_change(const ModelView& m, const DataView& d, const Block& block, const Parameter& p,
                     const BlockMotion& motion, double change[kMaxRows], Arena& arena);

// Returns the direction in which the anchor of a connect moves.
Vec3 anchor_motion(const ModelView& m, const DataView& d, const Parameter& p);

// Add the columns of dry friction, of a joint limit, and of a number that contacts take from a
// geom.
void add_friction_loss(const DataView& d, const StepDifferential& s, const Parameter& p,
                       const Column& column);
void add_limit(const ModelView& m, const DataView& d, const StepDifferential& s, const Parameter& p,
               const Column& column);
void add_contact_parameter(const ModelView& m, const DataView& d, const StepDifferential& s,
                           const Parameter& p, const Column& column);

}  // namespace mujacobian

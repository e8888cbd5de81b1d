// Columns of single parameters, by where they enter: inertia, forces, constraint rows.
#pragma once

#include "adjoint/parameter.h"

namespace mujacobian {

// The two columns of one parameter, over all dofs, to which is added. The discrete integrator has
// no late one, both are the same there; but it sees M_jj and what its metric adds to that: null
// where no row is corrected by them. (DIS-8)
struct Column {
  double *early, *late;
  double *inertia = nullptr, *added = nullptr;
};

// A motion of all bodies in which inverse dynamics is evaluated, and how much it weighs in a
// column.
struct Pass {
  DataView d;  // with the velocities of the motion
  const Motion* acceleration;
  double weight;
};

// What of inverse dynamics enters the two columns of a parameter of inertia or geometry.
struct Passes {
  Pass early;
  Pass late[3];
  int late_count;
  // the passes of `late` from this one on count in trees that the integrator has a block of
  static constexpr int kBias = 1;
  int count(bool block) const { return block ? late_count : kBias; }
};
Passes make_passes(const ModelView& m, const DataView& d, const StepDifferential& s, Arena& arena);

// The integrator has a block of the tree that the body is part of.
bool in_block(const ModelView& m, const StepDifferential& s, int body);

// Inertia of a body, with a weight for each component of kInertial.
void add_inertial(const ModelView& m, const StepDifferential& s, const Passes& passes, int body,
                  const double* components, const Column& column);

// The force about the reference point of the body's tree that a unit of a component of the body's
// inertia needs: I A + V x* I V                                                             (PAR-1)
Force inertial_force(const ModelView& m, const DataView& d, int body, int component,
                     const Motion& acceleration);

void add_gravity(const ModelView& m, const DataView& d, int component, const Column& column);
void add_armature(const StepDifferential& s, int dof, const Column& column);

// Places, orientations and radii of geoms, which only contacts see.
void add_geom(const ModelView& m, const DataView& d, const StepDifferential& s, const Parameter& p,
              const Column& column, Arena& arena);

// What a parameter does to the force along a path, and to the damping and stiffness of it that
// integrators know.
struct PathChange {
  const Path& path;
  double force, damping, stiffness;
};

// Springs, dampers and actuators.
class ForceColumns {
 public:
  ForceColumns(const ModelView& m, const DataView& d, const StepDifferential& s, Arena& arena)
      : m_(m), d_(d), s_(s), arena_(arena) {}
  void add(const Parameter& p, const Column& column);

 private:
  void add_damping(int dof, const Column& column) const;
  void add_stiffness(int joint, const Column& column) const;
  void add_spring_to_metric(int joint, const Column& column, double k) const;
  void add_tendon(const Parameter& p, const Column& column) const;
  void add_actuator(const Parameter& p, const Column& column);
  void add_path(const PathChange& change, const unsigned char* frozen, const Column& column) const;
  void add_to_metric(const PathChange& change, const Column& column) const;

  const ModelView& m_;
  const DataView& d_;
  const StepDifferential& s_;
  Arena& arena_;
  ActuatorForces actuators_{nullptr, -1};
};

// What a unit of a gain or bias does to the force of its actuator, limits included, and to the
// damping and stiffness that integrators know.
struct ActuatorChange {
  int index;  // of the actuator among all forces, -1: it is disabled
  double force, damping, stiffness;
};
ActuatorChange actuator_change(const ModelView& m, const DataView& d, const ActuatorForces& all,
                               const Parameter& p);

// Why an actuator's gain or bias is not a parameter, null if it is.
const char* actuator_parameter_refusal(const ModelView& m, const Parameter& p);

// Constants that mj_setConst derives and that constraints read.
inline bool is_weight(int kind) {
  return kind >= Parameter::kDofWeight && kind <= Parameter::kTendonWeight;
}
inline bool is_constant(int kind) {
  return is_weight(kind) || kind == Parameter::kTendonLength || kind == Parameter::kAnchor;
}
void add_constant(const ModelView& m, const DataView& d, const StepDifferential& s,
                  const Parameter& p, const Column& column, Arena& arena);

// What a unit of a constant does to the forces of a block at fixed acceleration; `motion` is that
// of the acceleration where the forces are.                                               (PAR-17)
void constant_change(const ModelView& m, const DataView& d, const Block& block, const Parameter& p,
                     const BlockMotion& motion, double change[kMaxRows], Arena& arena);

// The direction in which the anchor of a connect moves.
Vec3 anchor_motion(const ModelView& m, const DataView& d, const Parameter& p);

// Dry friction, and what contacts take from their geoms.
void add_row_parameter(const ModelView& m, const DataView& d, const StepDifferential& s,
                       const Parameter& p, const Column& column);

}  // namespace mujacobian

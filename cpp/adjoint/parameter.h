// Physical parameters: how the equations of one step change with numbers of the model while
// position, velocity, input and acceleration are held. Constants that MuJoCo's compiler derived
// from them (mj_setConst: invweight0, subtree masses, ...) are held too, as they are when a program
// writes into mjModel. docs/derivations/parameters.md.
#pragma once

#include "step/differential.h"

namespace mujacobian {

struct Parameter {
  enum Kind {
    kInertial,            // of a body, by component: mass, mass * com (3), inertia about the body's
                          // origin (xx yy zz xy xz yz), all in the body's frame
    kGravity,             // by component
    kDamping,             // of a dof
    kArmature,            // of a dof
    kFrictionLoss,        // of a dof
    kStiffness,           // of a joint
    kSpringReference,     // of a joint with one dof
    kGain,                // of an actuator, by component of gainprm
    kBias,                // of an actuator, by component of biasprm
    kTendonStiffness,     // of a tendon
    kTendonDamping,       // of a tendon
    kTendonRestLength,    // of a tendon, by end of tendon_lengthspring
    kTendonFrictionLoss,  // of a tendon
    kFriction,            // of a geom, by component
    kSolref,              // of a geom, by component
    kSolimp,              // of a geom, by component
    kLimit,               // of a joint with one dof, by end of jnt_range
    kLimitSolref,         // of a joint with one dof, by component of jnt_solref
    kBodyPosition,        // of a body, by component
    kBodyRotation,        // of a body, by axis of its own frame
    kJointPosition,       // of a joint, by component
    kJointAxis,           // of a joint, by component
    kGeomPosition,        // of a geom, by component
    kGeomRotation,        // of a geom, by axis of its own frame
    kGeomRadius,          // of a sphere or capsule
    kCount                // named in bindings/adjoint.cc
  };
  int kind, id, component;
};

struct ParameterList {
  const Parameter* item;
  int count;
};

// Of each parameter or direction, over all dofs: -dg at the acceleration where the step is
// differentiated, and what enters after d(acc). Null where there is no parameter.
struct ParameterColumns {
  int count;
  double *early, *late;

  ParameterColumns at(int k, int nv) const {
    return count ? ParameterColumns{1, early + k * nv, late + k * nv} : *this;
  }
};

ParameterColumns parameter_columns(const ModelView& m, const DataView& d, const StepDifferential& s,
                                   const ParameterList& params, Arena& arena);

// The same of `count` directions, one number per parameter each; null: none.
ParameterColumns directed_columns(const ModelView& m, const DataView& d, const StepDifferential& s,
                                  const ParameterList& params, const double* const* directions,
                                  int count, Arena& arena);

// Throw Unsupported for parameters whose derivative is not covered in this model.
void require_parameters(const ModelView& m, const ParameterList& params);

// Throw Unsupported where a sensor depends on one of the parameters in other ways than through the
// state. Sensors whose weights (null: ones) are all zero do not count.
void require_state_sensors(const ModelView& m, const ParameterList& params, const double* weights);

}  // namespace mujacobian

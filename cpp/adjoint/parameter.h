// Physical parameters: how the equations of one step change with numbers of the model while
// position, velocity, input and acceleration are held. Constants that mj_setConst derives from them
// (invweight0, ...) are parameters of their own, which the caller chains. See
// docs/derivations/parameters.md.
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
    kDofWeight,           // dof_invweight0 of a dof
    kBodyWeight,          // body_invweight0 of a body, by component
    kTendonWeight,        // tendon_invweight0 of a tendon
    kTendonLength,        // tendon_length0 of a tendon, which couplings of tendons read
    kActuatorWeight,      // actuator_acc0 of a muscle
    kAnchor,              // of a connect, by component of the anchor in its second body
    kInertialFrame,       // of a body; it changes nothing but what sensors of that frame read
    kBodyPosition,        // of a body, by component
    kBodyRotation,        // of a body, by axis of its own frame
    kJointPosition,       // of a joint, by component
    kJointAxis,           // of a joint, by component
    kMocapPosition,       // of a mocap body, by component
    kMocapRotation,       // of a mocap body, by axis of its own frame
    kGeomPosition,        // of a geom, by component
    kGeomRotation,        // of a geom, by axis of its own frame
    kGeomSize,            // of a sphere, capsule, cylinder or box, by component
    kCount                // named in bindings/adjoint.cc
  };
  int kind, id, component;
};

struct ParameterList {
  const Parameter* item;
  int count;
};

// Of each parameter or direction, over all dofs: -dg at the acceleration where the step is
// differentiated, and what enters after d(acc); over all activations: the change of their next
// values. Null where there is no parameter.
struct ParameterColumns {
  int count;
  double *early, *late, *act;

  ParameterColumns at(const ModelView& m, int k) const {
    if (!count) return *this;
    return {1, early + k * m.nv, late + k * m.nv, act + k * m.na};
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

// Some sensor depends on one of the parameters in other ways than through the state. Sensors whose
// weights (null: ones) are all zero do not count; throws Unsupported for one that is not covered.
bool sensors_see(const ModelView& m, const ParameterList& params, const double* weights);

// What the sensors see of the parameters while the state is held, (ns, parameters).
const double* sensed_parameters(const ModelView& m, const DataView& d, const ParameterList& params,
                                Arena& arena);

}  // namespace mujacobian

// The tables of parameter kinds and of their families. Python reads the kinds, too: a row with a
// field is a family of `mujacobian.Parameters`.
#pragma once

#include <limits>

#include "layout/enums.h"
#include "layout/table.h"

namespace mujacobian {

class ColumnContext;
class CurveContext;
struct Column;
struct ParameterSlopes;
struct ModelView;

// One number of the model.
struct Parameter {
  enum Kind {
    kInertial,
    kGravity,
    kWrench,
    kDamping,
    kArmature,
    kFrictionLoss,
    kStiffness,
    kSpringReference,
    kGain,
    kBias,
    kTendonStiffness,
    kTendonDamping,
    kTendonRestLength,
    kTendonFrictionLoss,
    kFriction,
    kSolref,
    kSolimp,
    kPairFriction,
    kPairSolref,
    kPairFrictionSolref,
    kPairSolimp,
    kLimit,
    kLimitSolref,
    kDofWeight,
    kBodyWeight,
    kTendonWeight,
    kTendonLength,
    kActuatorWeight,
    kAnchor,
    kEqualityData,
    kEqualitySolref,
    kEqualitySolimp,
    kInertialFrame,
    kBodyPosition,
    kBodyRotation,
    kBodyOffset,
    kBodyTurn,
    kJointPosition,
    kJointAxis,
    kMocapPosition,
    kMocapRotation,
    kGeomPosition,
    kGeomRotation,
    kGeomSize,
    kCount
  };
  int kind, id, component;
};

// Functions that add the columns of a parameter, one per family. column.h defines their arguments.
void add_inertia(ColumnContext& x, const Parameter& p, const Column& column);
void add_armature(ColumnContext& x, const Parameter& p, const Column& column);
void add_gravity(ColumnContext& x, const Parameter& p, const Column& column);
void add_wrench(ColumnContext& x, const Parameter& p, const Column& column);
void add_damper(ColumnContext& x, const Parameter& p, const Column& column);
void add_spring(ColumnContext& x, const Parameter& p, const Column& column);
void add_tendon(ColumnContext& x, const Parameter& p, const Column& column);
void add_actuator(ColumnContext& x, const Parameter& p, const Column& column);
void add_friction_loss(ColumnContext& x, const Parameter& p, const Column& column);
void add_contact(ColumnContext& x, const Parameter& p, const Column& column);
void add_pair(ColumnContext& x, const Parameter& p, const Column& column);
void add_equality_reference(ColumnContext& x, const Parameter& p, const Column& column);
void add_limit(ColumnContext& x, const Parameter& p, const Column& column);
void add_constant(ColumnContext& x, const Parameter& p, const Column& column);
void add_inertial_frame(ColumnContext& x, const Parameter& p, const Column& column);
void add_geom(ColumnContext& x, const Parameter& p, const Column& column);

// Functions that add the derivatives of a parameter's columns, contracted with the multipliers of a
// step, one per family. curve.h defines their arguments.
void curve_inertia(CurveContext& x, const Parameter& p, const ParameterSlopes& to);
void curve_armature(CurveContext& x, const Parameter& p, const ParameterSlopes& to);
void curve_gravity(CurveContext& x, const Parameter& p, const ParameterSlopes& to);
void curve_damper(CurveContext& x, const Parameter& p, const ParameterSlopes& to);
void curve_spring(CurveContext& x, const Parameter& p, const ParameterSlopes& to);
void curve_tendon(CurveContext& x, const Parameter& p, const ParameterSlopes& to);
void curve_actuator(CurveContext& x, const Parameter& p, const ParameterSlopes& to);
void curve_friction_loss(CurveContext& x, const Parameter& p, const ParameterSlopes& to);
void curve_weight(CurveContext& x, const Parameter& p, const ParameterSlopes& to);
void curve_nothing(CurveContext& x, const Parameter& p, const ParameterSlopes& to);

// Functions that throw Unsupported if a parameter is not supported in this model.
void require_inertia(const ModelView& m, const Parameter& p);
void require_armature(const ModelView& m, const Parameter& p);
void require_gravity(const ModelView& m, const Parameter& p);
void require_spring(const ModelView& m, const Parameter& p);
void require_actuator(const ModelView& m, const Parameter& p);
void require_contact(const ModelView& m, const Parameter& p);
void require_limit(const ModelView& m, const Parameter& p);
void require_equality(const ModelView& m, const Parameter& p);
void require_equality_reference(const ModelView& m, const Parameter& p);
void require_geom(const ModelView& m, const Parameter& p);

// Kinds whose columns are computed by the same function.
enum class Family {
  kInertia,            // inertia of a body
  kArmature,           // armature of a dof
  kGravity,            // gravity
  kWrench,             // xfrc_applied of a body
  kDamper,             // damping of a dof
  kSpring,             // springs of joints
  kTendon,             // springs and dampers of tendons
  kActuator,           // gains, biases and constants of actuators
  kFrictionLoss,       // dry friction of dofs and tendons
  kContact,            // numbers that contacts take from their geoms
  kPair,               // numbers of explicit contact pairs
  kLimit,              // limits of joints
  kWeight,             // derived constants that scale R
  kEquality,           // derived constants and data that equalities read
  kEqualityReference,  // solref and solimp of equalities
  kFrame,              // frames of bodies, joints and mocap bodies, which virtual dofs represent
  kInertialFrame,  // inertial frame of a body, which sensors of that frame and xfrc_applied read
  kGeom,           // poses and sizes of geoms
  kCount
};

struct ParameterFamily {
  Family family;
  // null: its columns are computed together (kFrame)
  void (*add)(ColumnContext& x, const Parameter& p, const Column& column) = nullptr;
  void (*require)(const ModelView& m, const Parameter& p) = nullptr;  // null: always supported
  // null: second derivatives are not supported
  void (*curve)(CurveContext& x, const Parameter& p, const ParameterSlopes& to) = nullptr;
};

// One row per family. The order has no meaning.
inline constexpr ParameterFamily kParameterFamilies[] = {
    {Family::kInertia, add_inertia, require_inertia, curve_inertia},
    {Family::kArmature, add_armature, require_armature, curve_armature},
    {Family::kGravity, add_gravity, require_gravity, curve_gravity},
    {Family::kWrench, add_wrench},
    {Family::kDamper, add_damper, nullptr, curve_damper},
    {Family::kSpring, add_spring, require_spring, curve_spring},
    {Family::kTendon, add_tendon, nullptr, curve_tendon},
    {Family::kActuator, add_actuator, require_actuator, curve_actuator},
    {Family::kFrictionLoss, add_friction_loss, nullptr, curve_friction_loss},
    {Family::kContact, add_contact, require_contact, curve_nothing},
    {Family::kPair, add_pair, require_contact},
    {Family::kLimit, add_limit, require_limit, curve_nothing},
    {Family::kWeight, add_constant, nullptr, curve_weight},
    {Family::kEquality, add_constant, require_equality},
    {Family::kEqualityReference, add_equality_reference, require_equality_reference},
    {Family::kFrame},
    {Family::kInertialFrame, add_inertial_frame, nullptr, curve_nothing},
    {Family::kGeom, add_geom, require_geom},
};

// Returns the row of a family.
inline const ParameterFamily& functions_of(Family family) {
  static constexpr auto kIndex =
      index_rows<static_cast<int>(Family::kCount)>(kParameterFamilies, &ParameterFamily::family);
  static_assert(is_complete(kIndex), "a family has no row");
  return kParameterFamilies[kIndex[static_cast<int>(family)]];
}

struct ParameterKind {
  int kind;          // Parameter::Kind
  const char* name;  // in Python
  Family family;
  int element;     // mjtObj of its owner; kJoint for numbers of a dof, although their id is the dof
  int components;  // per element
  const char* field = "";  // array of mjModel or mjOption, if users can name it as a parameter
  const char* unit = "";
  double lower = -std::numeric_limits<double>::infinity();  // lower bound of valid values
};

// One row per kind. The order has no meaning.
inline constexpr ParameterKind kParameterKinds[] = {
    // inertia: mass, mass * com (3), inertia about the body's origin (xx yy zz xy xz yz), all in
    // the frame of the body; body_mass and the other fields of inertia are functions of them
    {Parameter::kInertial, "inertial", Family::kInertia, object::kBody, 10},
    {Parameter::kArmature, "armature", Family::kArmature, object::kJoint, 1, "dof_armature",
     "kg or kg m^2", 0},
    {Parameter::kWrench, "wrench", Family::kWrench, object::kBody, 6},
    {Parameter::kGravity, "gravity", Family::kGravity, object::kUnknown, 3, "gravity", "m/s^2"},

    // frames of bodies and joints; rotations are about the axes of the frame itself. The offset and
    // the turn of a body move it after all its joints, along and about its own axes
    {Parameter::kBodyPosition, "body_position", Family::kFrame, object::kBody, 3, "body_pos", "m"},
    {Parameter::kBodyRotation, "body_rotation", Family::kFrame, object::kBody, 3},
    {Parameter::kBodyOffset, "body_offset", Family::kFrame, object::kBody, 3},
    {Parameter::kBodyTurn, "body_turn", Family::kFrame, object::kBody, 3},
    {Parameter::kJointPosition, "joint_position", Family::kFrame, object::kJoint, 3, "jnt_pos",
     "m"},
    {Parameter::kJointAxis, "joint_axis", Family::kFrame, object::kJoint, 3, "jnt_axis", "1"},
    {Parameter::kMocapPosition, "mocap_position", Family::kFrame, object::kBody, 3},
    {Parameter::kMocapRotation, "mocap_rotation", Family::kFrame, object::kBody, 3},
    {Parameter::kInertialFrame, "inertial_frame", Family::kInertialFrame, object::kBody, 1},

    // joints; the spring reference and the limits belong to joints with one dof
    {Parameter::kDamping, "damping", Family::kDamper, object::kJoint, 1, "dof_damping",
     "N s/m or N m s/rad", 0},
    {Parameter::kFrictionLoss, "friction_loss", Family::kFrictionLoss, object::kJoint, 1,
     "dof_frictionloss", "N or N m", 0},
    {Parameter::kStiffness, "stiffness", Family::kSpring, object::kJoint, 1, "jnt_stiffness",
     "N/m or N m/rad", 0},
    {Parameter::kSpringReference, "spring_reference", Family::kSpring, object::kJoint, 1,
     "qpos_spring", "m or rad"},
    {Parameter::kLimit, "limit", Family::kLimit, object::kJoint, 2, "jnt_range", "m or rad"},
    {Parameter::kLimitSolref, "limit_solref", Family::kLimit, object::kJoint, 2, "jnt_solref",
     "s, 1"},

    // actuators
    {Parameter::kGain, "gain", Family::kActuator, object::kActuator, 4, "actuator_gainprm", "1"},
    {Parameter::kBias, "bias", Family::kActuator, object::kActuator, 4, "actuator_biasprm", "1"},

    // tendons
    {Parameter::kTendonStiffness, "tendon_stiffness", Family::kTendon, object::kTendon, 1,
     "tendon_stiffness", "N/m", 0},
    {Parameter::kTendonDamping, "tendon_damping", Family::kTendon, object::kTendon, 1,
     "tendon_damping", "N s/m", 0},
    {Parameter::kTendonRestLength, "tendon_rest_length", Family::kTendon, object::kTendon, 2,
     "tendon_lengthspring", "m"},
    {Parameter::kTendonFrictionLoss, "tendon_friction_loss", Family::kFrictionLoss, object::kTendon,
     1, "tendon_frictionloss", "N", 0},

    // geoms; sizes belong to spheres, capsules, cylinders and boxes
    {Parameter::kGeomPosition, "geom_position", Family::kGeom, object::kGeom, 3, "geom_pos", "m"},
    {Parameter::kGeomRotation, "geom_rotation", Family::kGeom, object::kGeom, 3},
    {Parameter::kGeomSize, "geom_size", Family::kGeom, object::kGeom, 3, "geom_size", "m", 0},
    {Parameter::kFriction, "friction", Family::kContact, object::kGeom, 3, "geom_friction",
     "1 or m", 0},
    {Parameter::kSolref, "solref", Family::kContact, object::kGeom, 2, "geom_solref", "s, 1"},
    {Parameter::kSolimp, "solimp", Family::kContact, object::kGeom, 5, "geom_solimp",
     "1, 1, m, 1, 1", 0},

    // explicit contact pairs, whose id is their index, and the data of equalities: anchors of
    // connects and welds, relative poses and torque scales of welds, polynomials of joints
    {Parameter::kPairFriction, "pair_friction", Family::kPair, object::kUnknown, 5},
    {Parameter::kPairSolref, "pair_solref", Family::kPair, object::kUnknown, 2},
    {Parameter::kPairFrictionSolref, "pair_solreffriction", Family::kPair, object::kUnknown, 2},
    {Parameter::kPairSolimp, "pair_solimp", Family::kPair, object::kUnknown, 5},
    {Parameter::kEqualityData, "equality_data", Family::kEquality, object::kEquality, 11},
    {Parameter::kEqualitySolref, "equality_solref", Family::kEqualityReference, object::kEquality,
     2},
    {Parameter::kEqualitySolimp, "equality_solimp", Family::kEqualityReference, object::kEquality,
     5},

    // constants of mj_setConst: invweight0 of dofs, bodies and tendons, tendon_length0, acc0 of
    // muscles, anchors of connects in their second body
    {Parameter::kDofWeight, "dof_weight", Family::kWeight, object::kJoint, 1},
    {Parameter::kBodyWeight, "body_weight", Family::kWeight, object::kBody, 2},
    {Parameter::kTendonWeight, "tendon_weight", Family::kWeight, object::kTendon, 1},
    {Parameter::kTendonLength, "tendon_length", Family::kEquality, object::kTendon, 1},
    {Parameter::kActuatorWeight, "actuator_weight", Family::kActuator, object::kActuator, 1},
    {Parameter::kAnchor, "anchor", Family::kEquality, object::kEquality, 3},
};

// Returns the row of a parameter's kind.
inline const ParameterKind& kind_of(const Parameter& p) {
  static constexpr auto kIndex =
      index_rows<Parameter::kCount>(kParameterKinds, &ParameterKind::kind);
  static_assert(is_complete(kIndex), "a kind has no row");
  return kParameterKinds[kIndex[p.kind]];
}
inline Family family_of(const Parameter& p) { return kind_of(p).family; }

// Returns whether the parameter is a constant that mj_setConst derives and that constraints read.
inline bool is_constant(const Parameter& p) {
  return family_of(p) == Family::kWeight || family_of(p) == Family::kEquality;
}

}  // namespace mujacobian

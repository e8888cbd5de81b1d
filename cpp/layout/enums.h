// MuJoCo's enumerators, array strides and constants that the core uses. At import, Python compares
// all enumerators with the installed MuJoCo and raises an ImportError if a value has changed. Those
// of sensor types are in sensor/type.h.
#pragma once

namespace mujacobian {

// X(namespace, our name, MuJoCo's enum, MuJoCo's enumerator, value)
#define MUJACOBIAN_ENUMERATORS(X)                                                     \
  X(joint, kFree, mjtJoint, mjJNT_FREE, 0)                                            \
  X(joint, kBall, mjtJoint, mjJNT_BALL, 1)                                            \
  X(joint, kSlide, mjtJoint, mjJNT_SLIDE, 2)                                          \
  X(joint, kHinge, mjtJoint, mjJNT_HINGE, 3)                                          \
  X(integrator, kEuler, mjtIntegrator, mjINT_EULER, 0)                                \
  X(integrator, kRK4, mjtIntegrator, mjINT_RK4, 1)                                    \
  X(integrator, kImplicit, mjtIntegrator, mjINT_IMPLICIT, 2)                          \
  X(integrator, kImplicitFast, mjtIntegrator, mjINT_IMPLICITFAST, 3)                  \
  X(integrator, kDiscrete, mjtIntegrator, mjINT_DISCRETE, 4)                          \
  X(solver, kPGS, mjtSolver, mjSOL_PGS, 0)                                            \
  X(disable, kRefSafe, mjtDisableBit, mjDSBL_REFSAFE, 4096)                           \
  X(disable, kConstraint, mjtDisableBit, mjDSBL_CONSTRAINT, 1)                        \
  X(disable, kLimit, mjtDisableBit, mjDSBL_LIMIT, 8)                                  \
  X(disable, kSpring, mjtDisableBit, mjDSBL_SPRING, 32)                               \
  X(disable, kDamper, mjtDisableBit, mjDSBL_DAMPER, 64)                               \
  X(disable, kGravity, mjtDisableBit, mjDSBL_GRAVITY, 128)                            \
  X(disable, kClampCtrl, mjtDisableBit, mjDSBL_CLAMPCTRL, 256)                        \
  X(disable, kActuation, mjtDisableBit, mjDSBL_ACTUATION, 2048)                       \
  X(disable, kEulerDamp, mjtDisableBit, mjDSBL_EULERDAMP, 32768)                      \
  X(disable, kNativeCCD, mjtDisableBit, mjDSBL_NATIVECCD, 131072)                     \
  X(disable, kMultiCCD, mjtDisableBit, mjDSBL_MULTICCD, 524288)                       \
  X(enable, kOverride, mjtEnableBit, mjENBL_OVERRIDE, 1)                              \
  X(enable, kInvDiscrete, mjtEnableBit, mjENBL_INVDISCRETE, 8)                        \
  X(enable, kSleep, mjtEnableBit, mjENBL_SLEEP, 16)                                   \
  X(sleep_policy, kAutoNever, mjtSleepPolicy, mjSLEEP_AUTO_NEVER, 1)                  \
  X(sleep_policy, kNever, mjtSleepPolicy, mjSLEEP_NEVER, 3)                           \
  X(sleep_state, kAsleep, mjtSleepState, mjS_ASLEEP, 0)                               \
  X(wrap, kJoint, mjtWrap, mjWRAP_JOINT, 1)                                           \
  X(wrap, kPulley, mjtWrap, mjWRAP_PULLEY, 2)                                         \
  X(wrap, kSite, mjtWrap, mjWRAP_SITE, 3)                                             \
  X(wrap, kCylinder, mjtWrap, mjWRAP_CYLINDER, 5)                                     \
  X(transmission, kJoint, mjtTrn, mjTRN_JOINT, 0)                                     \
  X(transmission, kJointInParent, mjtTrn, mjTRN_JOINTINPARENT, 1)                     \
  X(transmission, kSliderCrank, mjtTrn, mjTRN_SLIDERCRANK, 2)                         \
  X(transmission, kTendon, mjtTrn, mjTRN_TENDON, 3)                                   \
  X(transmission, kSite, mjtTrn, mjTRN_SITE, 4)                                       \
  X(transmission, kBody, mjtTrn, mjTRN_BODY, 5)                                       \
  X(transmission, kSO3, mjtTrn, mjTRN_SO3, 6)                                         \
  X(dynamics, kNone, mjtDyn, mjDYN_NONE, 0)                                           \
  X(dynamics, kIntegrator, mjtDyn, mjDYN_INTEGRATOR, 1)                               \
  X(dynamics, kFilter, mjtDyn, mjDYN_FILTER, 2)                                       \
  X(dynamics, kFilterExact, mjtDyn, mjDYN_FILTEREXACT, 3)                             \
  X(dynamics, kMuscle, mjtDyn, mjDYN_MUSCLE, 4)                                       \
  X(dynamics, kMotor, mjtDyn, mjDYN_DCMOTOR, 5)                                       \
  X(dynamics, kPid, mjtDyn, mjDYN_PID, 6)                                             \
  X(gain, kFixed, mjtGain, mjGAIN_FIXED, 0)                                           \
  X(gain, kAffine, mjtGain, mjGAIN_AFFINE, 1)                                         \
  X(gain, kMuscle, mjtGain, mjGAIN_MUSCLE, 2)                                         \
  X(gain, kMotor, mjtGain, mjGAIN_DCMOTOR, 3)                                         \
  X(gain, kSO3, mjtGain, mjGAIN_SO3, 4)                                               \
  X(gain, kPid, mjtGain, mjGAIN_PID, 5)                                               \
  X(bias, kNone, mjtBias, mjBIAS_NONE, 0)                                             \
  X(bias, kAffine, mjtBias, mjBIAS_AFFINE, 1)                                         \
  X(bias, kMuscle, mjtBias, mjBIAS_MUSCLE, 2)                                         \
  X(bias, kMotor, mjtBias, mjBIAS_DCMOTOR, 3)                                         \
  X(bias, kSO3, mjtBias, mjBIAS_SO3, 4)                                               \
  X(input, kPosition, mjtCtrlInput, mjINPUT_POS, 1)                                   \
  X(input, kVelocity, mjtCtrlInput, mjINPUT_VEL, 2)                                   \
  X(input, kFeedforward, mjtCtrlInput, mjINPUT_FF, 4)                                 \
  X(input, kVoltage, mjtCtrlInput, mjINPUT_VOLTAGE, 8)                                \
  X(chart, kQuaternion, mjtCtrlChart, mjCHART_QUAT, 2)                                \
  X(constraint, kEquality, mjtConstraint, mjCNSTR_EQUALITY, 0)                        \
  X(constraint, kFrictionDof, mjtConstraint, mjCNSTR_FRICTION_DOF, 1)                 \
  X(constraint, kFrictionTendon, mjtConstraint, mjCNSTR_FRICTION_TENDON, 2)           \
  X(constraint, kLimitJoint, mjtConstraint, mjCNSTR_LIMIT_JOINT, 3)                   \
  X(constraint, kLimitTendon, mjtConstraint, mjCNSTR_LIMIT_TENDON, 4)                 \
  X(geom, kPlane, mjtGeom, mjGEOM_PLANE, 0)                                           \
  X(geom, kHField, mjtGeom, mjGEOM_HFIELD, 1)                                         \
  X(geom, kSphere, mjtGeom, mjGEOM_SPHERE, 2)                                         \
  X(geom, kCapsule, mjtGeom, mjGEOM_CAPSULE, 3)                                       \
  X(geom, kEllipsoid, mjtGeom, mjGEOM_ELLIPSOID, 4)                                   \
  X(geom, kCylinder, mjtGeom, mjGEOM_CYLINDER, 5)                                     \
  X(geom, kBox, mjtGeom, mjGEOM_BOX, 6)                                               \
  X(geom, kMesh, mjtGeom, mjGEOM_MESH, 7)                                             \
  X(geom, kSdf, mjtGeom, mjGEOM_SDF, 8)                                               \
  X(geom, kCount, mjtGeom, mjNGEOMTYPES, 9)                                           \
  X(equality, kConnect, mjtEq, mjEQ_CONNECT, 0)                                       \
  X(equality, kWeld, mjtEq, mjEQ_WELD, 1)                                             \
  X(equality, kJoint, mjtEq, mjEQ_JOINT, 2)                                           \
  X(equality, kTendon, mjtEq, mjEQ_TENDON, 3)                                         \
  X(constraint, kContactFrictionless, mjtConstraint, mjCNSTR_CONTACT_FRICTIONLESS, 5) \
  X(constraint, kContactPyramidal, mjtConstraint, mjCNSTR_CONTACT_PYRAMIDAL, 6)       \
  X(constraint, kContactElliptic, mjtConstraint, mjCNSTR_CONTACT_ELLIPTIC, 7)         \
  X(enable, kDiagExact, mjtEnableBit, mjENBL_DIAGEXACT, 32)                           \
  X(disable, kSensor, mjtDisableBit, mjDSBL_SENSOR, 8192)                             \
  X(stage, kNone, mjtStage, mjSTAGE_NONE, 0)                                          \
  X(capability, kActuator, mjtPluginCapabilityBit, mjPLUGIN_ACTUATOR, 1)              \
  X(capability, kSensor, mjtPluginCapabilityBit, mjPLUGIN_SENSOR, 2)                  \
  X(capability, kSdf, mjtPluginCapabilityBit, mjPLUGIN_SDF, 8)                        \
  X(stage, kPos, mjtStage, mjSTAGE_POS, 1)                                            \
  X(stage, kVel, mjtStage, mjSTAGE_VEL, 2)                                            \
  X(stage, kAcc, mjtStage, mjSTAGE_ACC, 3)                                            \
  X(datatype, kReal, mjtDataType, mjDATATYPE_REAL, 0)                                 \
  X(datatype, kPositive, mjtDataType, mjDATATYPE_POSITIVE, 1)                         \
  X(contact_data, kForce, mjtConDataField, mjCONDATA_FORCE, 1)                        \
  X(contact_data, kTorque, mjtConDataField, mjCONDATA_TORQUE, 2)                      \
  X(contact_data, kDist, mjtConDataField, mjCONDATA_DIST, 3)                          \
  X(contact_data, kPos, mjtConDataField, mjCONDATA_POS, 4)                            \
  X(contact_data, kNormal, mjtConDataField, mjCONDATA_NORMAL, 5)                      \
  X(contact_data, kTangent, mjtConDataField, mjCONDATA_TANGENT, 6)                    \
  X(ray_data, kDist, mjtRayDataField, mjRAYDATA_DIST, 0)                              \
  X(ray_data, kDir, mjtRayDataField, mjRAYDATA_DIR, 1)                                \
  X(ray_data, kOrigin, mjtRayDataField, mjRAYDATA_ORIGIN, 2)                          \
  X(ray_data, kPoint, mjtRayDataField, mjRAYDATA_POINT, 3)                            \
  X(ray_data, kNormal, mjtRayDataField, mjRAYDATA_NORMAL, 4)                          \
  X(ray_data, kDepth, mjtRayDataField, mjRAYDATA_DEPTH, 5)                            \
  X(object, kUnknown, mjtObj, mjOBJ_UNKNOWN, 0)                                       \
  X(object, kBody, mjtObj, mjOBJ_BODY, 1)                                             \
  X(object, kXBody, mjtObj, mjOBJ_XBODY, 2)                                           \
  X(object, kJoint, mjtObj, mjOBJ_JOINT, 3)                                           \
  X(object, kGeom, mjtObj, mjOBJ_GEOM, 5)                                             \
  X(object, kSite, mjtObj, mjOBJ_SITE, 6)                                             \
  X(object, kCamera, mjtObj, mjOBJ_CAMERA, 7)                                         \
  X(camera, kFixed, mjtCamLight, mjCAMLIGHT_FIXED, 0)                                 \
  X(camera, kTrack, mjtCamLight, mjCAMLIGHT_TRACK, 1)                                 \
  X(camera, kTrackCom, mjtCamLight, mjCAMLIGHT_TRACKCOM, 2)                           \
  X(camera, kTargetBodyCom, mjtCamLight, mjCAMLIGHT_TARGETBODYCOM, 4)                 \
  X(projection, kPerspective, mjtProjection, mjPROJ_PERSPECTIVE, 0)                   \
  X(object, kFlex, mjtObj, mjOBJ_FLEX, 9)                                             \
  X(object, kEquality, mjtObj, mjOBJ_EQUALITY, 17)                                    \
  X(warning, kContactFull, mjtWarning, mjWARN_CONTACTFULL, 1)                         \
  X(warning, kConstraintFull, mjtWarning, mjWARN_CNSTRFULL, 2)                        \
  X(warning, kBadQpos, mjtWarning, mjWARN_BADQPOS, 3)                                 \
  X(warning, kBadQvel, mjtWarning, mjWARN_BADQVEL, 4)                                 \
  X(warning, kBadQacc, mjtWarning, mjWARN_BADQACC, 5)                                 \
  X(warning, kBadCtrl, mjtWarning, mjWARN_BADCTRL, 6)                                 \
  X(object, kTendon, mjtObj, mjOBJ_TENDON, 18)                                        \
  X(object, kActuator, mjtObj, mjOBJ_ACTUATOR, 19)                                    \
  X(object, kSensor, mjtObj, mjOBJ_SENSOR, 20)                                        \
  X(object, kPlugin, mjtObj, mjOBJ_PLUGIN, 25)

#define MUJACOBIAN_ENUMERATOR(SPACE, NAME, ENUM, ORIGINAL, VALUE) \
  namespace SPACE {                                               \
  inline constexpr int NAME = VALUE;                              \
  }
MUJACOBIAN_ENUMERATORS(MUJACOBIAN_ENUMERATOR)

// Second extents of MuJoCo's arrays: mjNDYN, mjNGAIN, mjNBIAS, mjNPOLY, mjNFLUID, mjNSENS
inline constexpr int kNDyn = 10, kNGain = 10, kNBias = 10, kNPoly = 2, kNImp = 5, kNFluid = 12,
                     kNSens = 3;

// Fields of contact sensors that are new in MuJoCo 4.0 (mjCONDATA_LINVEL, mjCONDATA_ANGVEL).
namespace contact_data {
inline constexpr int kLinVel = 7, kAngVel = 8, kCount = 9;
}

// The number that guards divisions in MuJoCo (mjMINVAL). MuJoCo also keeps R constant below it.
inline constexpr double kMinVal = 1e-15;

// The smallest and largest impedance of a constraint (mjMINIMP, mjMAXIMP).
inline constexpr double kMinImp = 0.0001, kMaxImp = 0.9999;

// MuJoCo treats larger numbers as a diverged simulation (mjMAXVAL).
inline constexpr double kMaxVal = 1e10;

// Versions of MuJoCo that changed a computation, in the form of mj_version().
inline constexpr int kMuJoCo316 = 3016000, kMuJoCo317 = 3017000, kMuJoCo400 = 4000000;

}  // namespace mujacobian

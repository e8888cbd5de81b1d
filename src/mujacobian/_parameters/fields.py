"""The families of parameters: fields of mjModel, their elements, units and bounds."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np


@dataclass(frozen=True)
class Field:
    """The properties of a field of mjModel as a family of parameters."""

    kind: str  # of the core's parameters, "" if the core has other numbers
    element: mujoco.mjtObj | None  # the type of the elements that its rows belong to
    unit: str
    lower: float = -np.inf
    upper: float = np.inf
    components: tuple[int, ...] = ()  # of each row, () for a number


_OBJ = mujoco.mjtObj
# as integers: MuJoCo's enumerators are not equal to the elements of its arrays
FREE, BALL, SLIDE, HINGE = (
    int(kind)
    for kind in (
        mujoco.mjtJoint.mjJNT_FREE,
        mujoco.mjtJoint.mjJNT_BALL,
        mujoco.mjtJoint.mjJNT_SLIDE,
        mujoco.mjtJoint.mjJNT_HINGE,
    )
)
SINGLE_GAINS = tuple(
    int(getattr(mujoco.mjtGain, name))
    for name in ("mjGAIN_FIXED", "mjGAIN_PID")
    if hasattr(mujoco.mjtGain, name)
)
NO_BIAS = int(mujoco.mjtBias.mjBIAS_NONE)
_SPHERE, _CAPSULE, _CYLINDER, _BOX = (
    int(kind)
    for kind in (
        mujoco.mjtGeom.mjGEOM_SPHERE,
        mujoco.mjtGeom.mjGEOM_CAPSULE,
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        mujoco.mjtGeom.mjGEOM_BOX,
    )
)
# the number of sizes of geoms whose size can be a parameter
SIZES = {_SPHERE: 1, _CAPSULE: 2, _CYLINDER: 2, _BOX: 3}
# all families of parameters
FIELDS = {
    "body_mass": Field("", _OBJ.mjOBJ_BODY, "kg", 0.0),
    "body_ipos": Field("", _OBJ.mjOBJ_BODY, "m", components=(0, 1, 2)),
    "body_inertia": Field("", _OBJ.mjOBJ_BODY, "kg m^2", 0.0, components=(0, 1, 2)),
    "body_log_cholesky": Field("", _OBJ.mjOBJ_BODY, "1", components=tuple(range(10))),
    "gravity": Field("gravity", None, "m/s^2", components=(0, 1, 2)),
    "body_pos": Field("body_position", _OBJ.mjOBJ_BODY, "m", components=(0, 1, 2)),
    "body_quat": Field("", _OBJ.mjOBJ_BODY, "1", components=(0, 1, 2, 3)),
    "jnt_pos": Field("joint_position", _OBJ.mjOBJ_JOINT, "m", components=(0, 1, 2)),
    "jnt_axis": Field("joint_axis", _OBJ.mjOBJ_JOINT, "1", components=(0, 1, 2)),
    "dof_damping": Field("damping", _OBJ.mjOBJ_JOINT, "N s/m or N m s/rad", 0.0),
    "dof_armature": Field("armature", _OBJ.mjOBJ_JOINT, "kg or kg m^2", 0.0),
    "dof_frictionloss": Field("friction_loss", _OBJ.mjOBJ_JOINT, "N or N m", 0.0),
    "jnt_stiffness": Field("stiffness", _OBJ.mjOBJ_JOINT, "N/m or N m/rad", 0.0),
    "qpos_spring": Field("spring_reference", _OBJ.mjOBJ_JOINT, "m or rad"),
    "jnt_range": Field("limit", _OBJ.mjOBJ_JOINT, "m or rad", components=(0, 1)),
    "jnt_solref": Field("limit_solref", _OBJ.mjOBJ_JOINT, "s, 1", components=(0, 1)),
    "actuator_gainprm": Field("gain", _OBJ.mjOBJ_ACTUATOR, "1", components=(0, 1, 2, 3)),
    "actuator_biasprm": Field("bias", _OBJ.mjOBJ_ACTUATOR, "1", components=(0, 1, 2, 3)),
    "tendon_stiffness": Field("tendon_stiffness", _OBJ.mjOBJ_TENDON, "N/m", 0.0),
    "tendon_damping": Field("tendon_damping", _OBJ.mjOBJ_TENDON, "N s/m", 0.0),
    "tendon_lengthspring": Field("tendon_rest_length", _OBJ.mjOBJ_TENDON, "m", components=(0, 1)),
    "tendon_frictionloss": Field("tendon_friction_loss", _OBJ.mjOBJ_TENDON, "N", 0.0),
    "geom_pos": Field("geom_position", _OBJ.mjOBJ_GEOM, "m", components=(0, 1, 2)),
    "geom_quat": Field("", _OBJ.mjOBJ_GEOM, "1", components=(0, 1, 2, 3)),
    "geom_size": Field("geom_size", _OBJ.mjOBJ_GEOM, "m", 0.0, components=(0, 1, 2)),
    "geom_friction": Field("friction", _OBJ.mjOBJ_GEOM, "1 or m", 0.0, components=(0, 1, 2)),
    "geom_solref": Field("solref", _OBJ.mjOBJ_GEOM, "s, 1", components=(0, 1)),
    "geom_solimp": Field(
        "solimp", _OBJ.mjOBJ_GEOM, "1, 1, m, 1, 1", 0.0, components=(0, 1, 2, 3, 4)
    ),
}

# quaternions, and the kinds of the core's parameters, which are rotations
QUATERNIONS = {"body_quat": "body_rotation", "geom_quat": "geom_rotation"}

COUNTS = {
    _OBJ.mjOBJ_BODY: "nbody",
    _OBJ.mjOBJ_JOINT: "njnt",
    _OBJ.mjOBJ_ACTUATOR: "nactuator",
    _OBJ.mjOBJ_TENDON: "ntendon",
    _OBJ.mjOBJ_GEOM: "ngeom",
}

"""The families of parameters: fields of mjModel, their elements, units and bounds."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian import _core


@dataclass(frozen=True)
class Field:
    """The properties of a field of mjModel as a family of parameters."""

    kind: str  # of the core's parameters, "" if several of them make up this field
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
# the number of each kind of parameter in the core
KINDS = {row[0]: number for number, row in enumerate(_core.parameter_kinds())}


def _core_fields() -> dict[str, Field]:
    """The fields whose numbers are parameters of the core."""
    fields = {}
    for kind, field, element, count, unit, lower in _core.parameter_kinds():
        if field:
            owner = None if element == int(_OBJ.mjOBJ_UNKNOWN) else _OBJ(element)
            components = tuple(range(count)) if count > 1 else ()
            fields[field] = Field(kind, owner, unit, lower, components=components)
    return fields


# all families of parameters
FIELDS = {
    "body_mass": Field("", _OBJ.mjOBJ_BODY, "kg", 0.0),
    "body_ipos": Field("", _OBJ.mjOBJ_BODY, "m", components=(0, 1, 2)),
    "body_inertia": Field("", _OBJ.mjOBJ_BODY, "kg m^2", 0.0, components=(0, 1, 2)),
    "body_log_cholesky": Field("", _OBJ.mjOBJ_BODY, "1", components=tuple(range(10))),
    "body_quat": Field("", _OBJ.mjOBJ_BODY, "1", components=(0, 1, 2, 3)),
    "geom_quat": Field("", _OBJ.mjOBJ_GEOM, "1", components=(0, 1, 2, 3)),
    **_core_fields(),
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

"""Physical parameters of a model as a vector, for gradients and identification."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core, notices
from mujacobian.errors import ArgumentError, ArgumentTypeError

Array = NDArray[np.float64]

_KINDS = _core.parameter_kinds()
_INERTIAL = _KINDS.index("inertial")
# quaternions, which the core has as rotations
_TURNED = {"body_quat": "body_rotation", "geom_quat": "geom_rotation"}
_INERTIA_FIELDS = ("body_mass", "body_ipos", "body_inertia", "body_log_cholesky")


@dataclass(frozen=True)
class _Field:
    """How a field of mjModel is offered."""

    kind: str  # of the core's raw parameters, "" where the core has other numbers
    element: mujoco.mjtObj | None  # what its rows belong to
    unit: str
    lower: float = -np.inf
    upper: float = np.inf
    components: tuple[int, ...] = ()  # of each row, () for a number


_OBJ = mujoco.mjtObj
# as integers: MuJoCo's enumerators are not equal to the elements of its arrays
_FREE, _BALL, _SLIDE, _HINGE = (
    int(kind)
    for kind in (
        mujoco.mjtJoint.mjJNT_FREE,
        mujoco.mjtJoint.mjJNT_BALL,
        mujoco.mjtJoint.mjJNT_SLIDE,
        mujoco.mjtJoint.mjJNT_HINGE,
    )
)
_SINGLE_GAINS = tuple(
    int(getattr(mujoco.mjtGain, name))
    for name in ("mjGAIN_FIXED", "mjGAIN_PID")
    if hasattr(mujoco.mjtGain, name)
)
_NO_BIAS = int(mujoco.mjtBias.mjBIAS_NONE)
_SPHERE, _CAPSULE, _CYLINDER, _BOX = (
    int(kind)
    for kind in (
        mujoco.mjtGeom.mjGEOM_SPHERE,
        mujoco.mjtGeom.mjGEOM_CAPSULE,
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        mujoco.mjtGeom.mjGEOM_BOX,
    )
)
# numbers in the size of geoms whose size can be a parameter
_SIZES = {_SPHERE: 1, _CAPSULE: 2, _CYLINDER: 2, _BOX: 3}
_FIELDS = {
    "body_mass": _Field("", _OBJ.mjOBJ_BODY, "kg", 0.0),
    "body_ipos": _Field("", _OBJ.mjOBJ_BODY, "m", components=(0, 1, 2)),
    "body_inertia": _Field("", _OBJ.mjOBJ_BODY, "kg m^2", 0.0, components=(0, 1, 2)),
    "body_log_cholesky": _Field("", _OBJ.mjOBJ_BODY, "1", components=tuple(range(10))),
    "gravity": _Field("gravity", None, "m/s^2", components=(0, 1, 2)),
    "body_pos": _Field("body_position", _OBJ.mjOBJ_BODY, "m", components=(0, 1, 2)),
    "body_quat": _Field("", _OBJ.mjOBJ_BODY, "1", components=(0, 1, 2, 3)),
    "jnt_pos": _Field("joint_position", _OBJ.mjOBJ_JOINT, "m", components=(0, 1, 2)),
    "jnt_axis": _Field("joint_axis", _OBJ.mjOBJ_JOINT, "1", components=(0, 1, 2)),
    "dof_damping": _Field("damping", _OBJ.mjOBJ_JOINT, "N s/m or N m s/rad", 0.0),
    "dof_armature": _Field("armature", _OBJ.mjOBJ_JOINT, "kg or kg m^2", 0.0),
    "dof_frictionloss": _Field("friction_loss", _OBJ.mjOBJ_JOINT, "N or N m", 0.0),
    "jnt_stiffness": _Field("stiffness", _OBJ.mjOBJ_JOINT, "N/m or N m/rad", 0.0),
    "qpos_spring": _Field("spring_reference", _OBJ.mjOBJ_JOINT, "m or rad"),
    "jnt_range": _Field("limit", _OBJ.mjOBJ_JOINT, "m or rad", components=(0, 1)),
    "jnt_solref": _Field("limit_solref", _OBJ.mjOBJ_JOINT, "s, 1", components=(0, 1)),
    "actuator_gainprm": _Field("gain", _OBJ.mjOBJ_ACTUATOR, "1", components=(0, 1, 2, 3)),
    "actuator_biasprm": _Field("bias", _OBJ.mjOBJ_ACTUATOR, "1", components=(0, 1, 2, 3)),
    "tendon_stiffness": _Field("tendon_stiffness", _OBJ.mjOBJ_TENDON, "N/m", 0.0),
    "tendon_damping": _Field("tendon_damping", _OBJ.mjOBJ_TENDON, "N s/m", 0.0),
    "tendon_lengthspring": _Field("tendon_rest_length", _OBJ.mjOBJ_TENDON, "m", components=(0, 1)),
    "tendon_frictionloss": _Field("tendon_friction_loss", _OBJ.mjOBJ_TENDON, "N", 0.0),
    "geom_pos": _Field("geom_position", _OBJ.mjOBJ_GEOM, "m", components=(0, 1, 2)),
    "geom_quat": _Field("", _OBJ.mjOBJ_GEOM, "1", components=(0, 1, 2, 3)),
    "geom_size": _Field("geom_size", _OBJ.mjOBJ_GEOM, "m", 0.0, components=(0, 1, 2)),
    "geom_friction": _Field("friction", _OBJ.mjOBJ_GEOM, "1 or m", 0.0, components=(0, 1, 2)),
    "geom_solref": _Field("solref", _OBJ.mjOBJ_GEOM, "s, 1", components=(0, 1)),
    "geom_solimp": _Field(
        "solimp", _OBJ.mjOBJ_GEOM, "1, 1, m, 1, 1", 0.0, components=(0, 1, 2, 3, 4)
    ),
}

_COUNTS = {
    _OBJ.mjOBJ_BODY: "nbody",
    _OBJ.mjOBJ_JOINT: "njnt",
    _OBJ.mjOBJ_ACTUATOR: "nactuator",
    _OBJ.mjOBJ_TENDON: "ntendon",
    _OBJ.mjOBJ_GEOM: "ngeom",
}

Item = str | tuple[str, str | int | Sequence[str | int]]


@dataclass(frozen=True)
class _Entry:
    """One number of the vector: a component of a row of a field."""

    field: str
    element: int  # body, joint, ...
    row: int  # of the field
    component: int  # -1 for a number


class Parameters:
    """Chosen numbers of a model as one vector.

    Args:
      model: the model; it is not changed.
      items: fields, all of whose elements are meant (those that have any, of frictionloss and of
        limits), or pairs (field, element or elements), with elements by name or index. Fields of
        dofs and `qpos_spring` go by joint.

    Fields are those of `mujoco.MjModel`: body_mass, body_ipos, body_inertia, body_pos, body_quat,
    jnt_pos, jnt_axis, jnt_range and jnt_solref (of slides and hinges), jnt_stiffness, qpos_spring,
    dof_damping, dof_armature, dof_frictionloss,
    actuator_gainprm and actuator_biasprm (of muscles their largest force or its scale, else the
    first three components), tendon_stiffness,
    tendon_damping, tendon_lengthspring, tendon_frictionloss, geom_pos, geom_quat, geom_size (of
    spheres, capsules, cylinders and boxes), geom_friction, geom_solref, geom_solimp; `gravity`; and
    `body_log_cholesky`, ten numbers without constraints that describe all physically possible
    inertias of a body (the upper Cholesky factor of its pseudo-inertia, diagonal as logarithms).
    Quaternions and axes are made unit vectors.

    Numbers that MuJoCo's compiler derived from others (`mj_setConst`: invweight0, the lengths at
    qpos0, ...) are held, as they are when a program writes into a model; subtree masses and the
    inertia of bodies that MuJoCo calls simple follow.

    Example:
      >>> import mujoco, mujacobian
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body name='arm'><joint name='j' damping='.1'/>"
      ...     "<geom size='.1' pos='0 0 -1'/></body></worldbody></mujoco>")
      >>> p = mujacobian.Parameters(model, [("body_mass", "arm"), ("dof_damping", "j")])
      >>> p.names
      ('body_mass["arm"]', 'dof_damping["j"]')
      >>> float(p.values[1])
      0.1
    """

    def __init__(self, model: mujoco.MjModel, items: Iterable[Item]) -> None:
        if not isinstance(model, mujoco.MjModel):
            raise ArgumentTypeError(f"model must be a mujoco.MjModel, got {type(model).__name__}")
        if isinstance(items, str):
            raise ArgumentTypeError(f'items must be a list of fields, such as ["{items}"]')
        if not isinstance(items, Iterable):
            raise ArgumentTypeError(f"items must be a list of fields, got {items!r}")
        self.model = copy.copy(model)
        notices.share(model, self.model)
        self._entries = tuple(e for item in items for e in _expand(model, item))
        repeated = [e for k, e in enumerate(self._entries) if e in self._entries[:k]]
        if repeated:
            raise ArgumentError(f"{_name(model, repeated[0])} is asked for twice")
        self._refuse_overlap()
        self._bodies = self._elements(*_INERTIA_FIELDS)
        self._turned = [(field, element) for field in _TURNED for element in self._elements(field)]
        core: list[tuple[int, int, int]] = []
        for body in self._bodies:
            core += [(_INERTIAL, body, k) for k in range(10)]
        for field, element in self._turned:
            core += [(_KINDS.index(_TURNED[field]), element, k) for k in range(3)]
        for entry in self._entries:
            if kind := _FIELDS[entry.field].kind:
                row = entry.element if entry.field == "qpos_spring" else entry.row
                core.append((_KINDS.index(kind), row, max(0, entry.component)))
        self.core: list[tuple[int, int, int]] = core

    def __len__(self) -> int:
        return len(self._entries)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each number is."""
        return tuple(_name(self.model, e) for e in self._entries)

    @property
    def units(self) -> tuple[str, ...]:
        """Units; two where they depend on the kind of joint (translation or rotation)."""
        return tuple(_FIELDS[e.field].unit for e in self._entries)

    @property
    def lower(self) -> Array:
        """Least value that makes sense, -inf where there is none."""
        return np.array([_FIELDS[e.field].lower for e in self._entries])

    @property
    def upper(self) -> Array:
        """Largest value that makes sense, inf where there is none."""
        return np.array([_FIELDS[e.field].upper for e in self._entries])

    @property
    def values(self) -> Array:
        """The numbers in the model."""
        return np.array([_read(self.model, e) for e in self._entries], dtype=np.float64)

    def check(self, values: ArrayLike) -> Array:
        """`values` as a vector, or an error that says what is wrong with it."""
        vector = np.asarray(values, dtype=np.float64)
        if vector.shape != (len(self),):
            raise ArgumentError(f"values must have shape ({len(self)},), got {vector.shape}")
        lower = self.lower
        for k in np.flatnonzero(~(np.isfinite(vector) & (vector >= lower)))[:1]:
            name, value = self.names[k], vector[k]
            if not np.isfinite(value):
                raise ArgumentError(f"{name} must be finite, got {value}")
            raise ArgumentError(f"{name} must be at least {lower[k]:g}, got {value:g}")
        return vector

    def apply(self, values: ArrayLike) -> mujoco.MjModel:
        """A copy of the model with these values."""
        vector = self.check(values)
        model = copy.copy(self.model)
        notices.share(self.model, model)
        for entry, value in zip(self._entries, vector, strict=True):
            if entry.field != "body_log_cholesky":
                _write(model, entry, value)
        for field, element in self._turned:
            getattr(model, field)[element] /= np.linalg.norm(getattr(model, field)[element])
        for joint in self._elements("jnt_axis"):
            model.jnt_axis[joint] /= np.linalg.norm(model.jnt_axis[joint])
        for body in self._bodies:
            chosen = self._places("body_log_cholesky", body)
            if chosen:
                _write_inertia(model, body, _from_log_cholesky(vector[chosen])[0])
            elif self._places("body_ipos", body):
                model.body_sameframe[body] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
        for geom in self._elements("geom_pos", "geom_quat"):
            model.geom_sameframe[geom] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE
        for geom in self._elements("geom_size"):
            _bound(model, geom)
        restore_derived(model)
        return model

    def jacobian(self, values: ArrayLike, applied: mujoco.MjModel | None = None) -> Array:
        """How the raw parameters of the core change with the vector, (len(core), len(self)).

        `applied` is the model with these values, if it is there already.
        """
        model = self.apply(values) if applied is None else applied
        vector = np.asarray(values, dtype=np.float64)
        result = np.zeros((len(self.core), len(self)))
        for k, body in enumerate(self._bodies):
            rows = slice(10 * k, 10 * k + 10)
            chosen = self._places("body_log_cholesky", body)
            if chosen:
                result[rows, chosen] = _from_log_cholesky(vector[chosen])[1]
                continue
            slopes = _inertial_slopes(model, body)
            for column, e in enumerate(self._entries):
                if e.element == body and e.field in slopes:
                    result[rows, column] = slopes[e.field][:, max(0, e.component)]
        row = 10 * len(self._bodies)
        for field, element in self._turned:
            w, x, y, z = getattr(model, field)[element]
            columns = self._places(field, element)
            turn = np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
            result[row : row + 3, columns] = 2 / np.linalg.norm(vector[columns]) * turn
            row += 3
        for column, e in enumerate(self._entries):
            if _FIELDS[e.field].kind:
                result[row, column] = 1
                row += 1
        return result

    def _elements(self, *fields: str) -> tuple[int, ...]:
        """The elements, each once, of which one of the fields is in the vector."""
        return tuple(dict.fromkeys(e.element for e in self._entries if e.field in fields))

    def _places(self, field: str, element: int) -> list[int]:
        """Where the numbers of an element's field are in the vector."""
        return [k for k, e in enumerate(self._entries) if (e.field, e.element) == (field, element)]

    def _refuse_overlap(self) -> None:
        for e in self._entries:
            name = mujoco.mj_id2name(self.model, _OBJ.mjOBJ_BODY, e.element)
            if e.field in ("body_ipos", "body_log_cholesky") and self.model.body_simple[e.element]:
                raise ArgumentError(
                    f'{e.field} of body "{name}": MuJoCo compiled this body as simple (its frame is'
                    " at its centre of mass), so that its centre of mass cannot move. Use body_mass"
                    " and body_inertia, or compile the model with an inertial frame off the origin"
                )
            if e.field in ("jnt_pos", "jnt_axis"):
                _require_single_joint(self.model, e)
            if e.field in ("body_pos", "body_quat") and self.model.body_mocapid[e.element] >= 0:
                raise ArgumentError(
                    f'{e.field} of body "{name}": it is a mocap body, whose pose is an input of'
                    " rollouts and products (mocap) and no parameter"
                )
            if e.field == "body_log_cholesky":
                others = {"body_mass", "body_ipos", "body_inertia"}
                if any(o.field in others and o.element == e.element for o in self._entries):
                    raise ArgumentError(
                        f'body_log_cholesky of body "{name}" already has its mass, centre of mass'
                        " and inertia"
                    )


def _expand(model: mujoco.MjModel, item: Item) -> list[_Entry]:
    """The numbers that an item of the list means."""
    is_pair = isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], str)
    if not isinstance(item, str) and not is_pair:
        raise ArgumentTypeError(
            f"items must be fields or pairs (field, element or elements), got {item!r}"
        )
    name, chosen = (item, None) if isinstance(item, str) else item
    if name not in _FIELDS:
        raise ArgumentError(f"unknown field {name!r}, known are {', '.join(_FIELDS)}")
    field = _FIELDS[name]
    components = field.components or (-1,)
    if field.element is None:
        return [_Entry(name, 0, 0, k) for k in components]
    entries = []
    for element in _elements(model, name, field.element, chosen):
        for row in _rows(model, name, element):
            if name.endswith("frictionloss") and getattr(model, name)[row] == 0:
                if chosen is None:
                    continue
                raise ArgumentError(
                    f"{_name(model, _Entry(name, element, row, -1))} is zero, where MuJoCo has no"
                    " dry friction at all: give it a small value first"
                )
            entries += [
                _Entry(name, element, row, k) for k in components if _has(model, name, row, k)
            ]
    return entries


def _has_frame(model: mujoco.MjModel, field: str, joint: int) -> bool:
    """The joint has an anchor or an axis, and is the only one of its body."""
    kind, body = model.jnt_type[joint], model.jnt_bodyid[joint]
    other = _BALL if field == "jnt_pos" else _SLIDE
    return model.body_jntnum[body] == 1 and kind in (_HINGE, other)


def _require_single_joint(model: mujoco.MjModel, e: _Entry) -> None:
    if not _has_frame(model, e.field, e.element):
        raise ArgumentError(
            f"{_name(model, e)}: only of a body's one hinge, ball (jnt_pos) or slide (jnt_axis)"
        )


def _elements(
    model: mujoco.MjModel, field: str, kind: mujoco.mjtObj, chosen: object
) -> Sequence[int]:
    count = getattr(model, _COUNTS[kind])
    if chosen is None:
        if field == "geom_size":
            return [g for g in range(count) if int(model.geom_type[g]) in _SIZES]
        if field in ("jnt_pos", "jnt_axis"):
            return [j for j in range(count) if _has_frame(model, field, j)]
        if field in ("body_pos", "body_quat"):
            return [b for b in range(1, count) if model.body_mocapid[b] < 0]
        if field in ("jnt_range", "jnt_solref"):
            scalar = np.isin(model.jnt_type, (_SLIDE, _HINGE))
            return [int(j) for j in np.flatnonzero(model.jnt_limited.astype(bool) & scalar)]
        first = 1 if kind == _OBJ.mjOBJ_BODY else 0  # the world has no inertia
        return range(first, count)
    several = (
        list(chosen) if isinstance(chosen, Iterable) and not isinstance(chosen, str) else [chosen]
    )
    result = []
    for element in several:
        if isinstance(element, bool) or not isinstance(element, str | int | np.integer):
            raise ArgumentTypeError(f"{field}: elements must be names or indices, got {element!r}")
        index = mujoco.mj_name2id(model, kind, element) if isinstance(element, str) else element
        if not 0 <= index < count:
            raise ArgumentError(f"{field}: the model has no {kind.name[6:].lower()} {element!r}")
        result.append(int(index))
    return result


def _rows(model: mujoco.MjModel, field: str, element: int) -> Iterable[int]:
    """The rows of the field that belong to the element."""
    if field.startswith("dof_"):
        size = (6, 3, 1, 1)[model.jnt_type[element]]
        return range(model.jnt_dofadr[element], model.jnt_dofadr[element] + size)
    if field == "qpos_spring":
        scalar = model.jnt_type[element] in (_SLIDE, _HINGE)
        return [model.jnt_qposadr[element]] if scalar else []
    return [element]


def _has(model: mujoco.MjModel, field: str, row: int, component: int) -> bool:
    """The component matters: constant gains have one, muscles one, no bias has none."""
    if field == "actuator_gainprm":
        if model.actuator_gaintype[row] == int(mujoco.mjtGain.mjGAIN_MUSCLE):
            return component == _muscle_force(model.actuator_gainprm[row])
        several = model.actuator_gaintype[row] not in _SINGLE_GAINS
        return component < (3 if several else 1)
    if field == "actuator_biasprm":
        if model.actuator_biastype[row] == int(mujoco.mjtBias.mjBIAS_MUSCLE):
            return component == _muscle_force(model.actuator_biasprm[row])
        return component < (0 if model.actuator_biastype[row] == _NO_BIAS else 3)
    if field == "geom_size":
        return component < _SIZES.get(int(model.geom_type[row]), 1)
    return True


def _muscle_force(prm: Array) -> int:
    """Where the largest force of a muscle is, or where the scale that it has instead is."""
    return 3 if prm[2] < 0 else 2


def _name(model: mujoco.MjModel, e: _Entry) -> str:
    kind = _FIELDS[e.field].element
    if kind is None:
        return f"{e.field}[{e.component}]"
    name = mujoco.mj_id2name(model, kind, e.element)
    text = f'{e.field}["{name}"]' if name else f"{e.field}[{e.element}]"
    rows = list(_rows(model, e.field, e.element))
    if len(rows) > 1:
        text += f"[{rows.index(e.row)}]"
    return text if e.component < 0 else f"{text}[{e.component}]"


def _read(model: mujoco.MjModel, e: _Entry) -> float:
    if e.field == "body_log_cholesky":
        return float(_log_cholesky(model, e.element)[e.component])
    if e.field == "gravity":
        return float(model.opt.gravity[e.component])
    row = getattr(model, e.field)[e.row]
    return float(row if e.component < 0 else row[e.component])


def _write(model: mujoco.MjModel, e: _Entry, value: float) -> None:
    if e.field == "gravity":
        model.opt.gravity[e.component] = value
    elif e.component < 0:
        getattr(model, e.field)[e.row] = value
    else:
        getattr(model, e.field)[e.row][e.component] = value


def _bound(model: mujoco.MjModel, geom: int) -> None:
    """The bounds by which MuJoCo sorts out geoms that cannot touch."""
    size, kind = model.geom_size[geom], int(model.geom_type[geom])
    if kind == _SPHERE:
        half, reach = np.full(3, size[0]), size[0]
    elif kind == _CAPSULE:
        reach = size[0] + size[1]
        half = np.array([size[0], size[0], reach])
    elif kind == _CYLINDER:
        half, reach = size[[0, 0, 1]], np.hypot(size[0], size[1])
    else:
        half, reach = size, np.linalg.norm(size)
    model.geom_rbound[geom] = reach
    model.geom_aabb[geom][3:] = half


def restore_derived(model: mujoco.MjModel) -> None:
    """Subtree masses, and the constant inertia that MuJoCo keeps for bodies it calls simple."""
    model.body_subtreemass[:] = model.body_mass
    for body in range(model.nbody - 1, 0, -1):
        model.body_subtreemass[model.body_parentid[body]] += model.body_subtreemass[body]
    for dof in np.flatnonzero(model.dof_simplenum):
        body, joint = model.dof_bodyid[dof], model.dof_jntid[dof]
        place = dof - model.jnt_dofadr[joint]
        kind = model.jnt_type[joint]
        if kind == _SLIDE or (kind == _FREE and place < 3):
            inertia = model.body_mass[body]
        elif kind == _HINGE:
            axis = _frame(model, body).T @ model.jnt_axis[joint]
            inertia = model.body_inertia[body] @ axis**2
        else:
            inertia = model.body_inertia[body][place % 3]
        model.dof_M0[dof] = inertia + model.dof_armature[dof]


# Inertia of a body as the core has it: mass, mass * com, and the moments xx yy zz xy xz yz about
# the body's origin, in the body's frame.
_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def _pack(moments: Array) -> Array:
    return np.array([moments[i, j] for i, j in _PAIRS])


def _unpack(packed: Array) -> Array:
    moments = np.empty((3, 3))
    for value, (i, j) in zip(packed, _PAIRS, strict=True):
        moments[i, j] = moments[j, i] = value
    return moments


def _steiner(a: Array, b: Array) -> Array:
    """Moments about the origin of a unit mass at a, as a bilinear form in a = b."""
    return float(a @ b) * np.eye(3) - 0.5 * (np.outer(a, b) + np.outer(b, a))


def _frame(model: mujoco.MjModel, body: int) -> Array:
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    return axes.reshape(3, 3)


def _inertial(model: mujoco.MjModel, body: int) -> Array:
    mass, com, axes = model.body_mass[body], model.body_ipos[body], _frame(model, body)
    moments = axes @ np.diag(model.body_inertia[body]) @ axes.T + mass * _steiner(com, com)
    return np.concatenate([[mass], mass * com, _pack(moments)])


def _inertial_slopes(model: mujoco.MjModel, body: int) -> dict[str, Array]:
    """Derivatives of the ten numbers with respect to the fields of mjModel."""
    mass, com, axes = model.body_mass[body], model.body_ipos[body], _frame(model, body)
    of_mass = np.concatenate([[1.0], com, _pack(_steiner(com, com))])
    of_com = [
        np.concatenate([[0.0], mass * e, 2 * mass * _pack(_steiner(com, e))]) for e in np.eye(3)
    ]
    of_inertia = [np.concatenate([np.zeros(4), _pack(np.outer(axis, axis))]) for axis in axes.T]
    return {
        "body_mass": of_mass[:, None],
        "body_ipos": np.array(of_com).T,
        "body_inertia": np.array(of_inertia).T,
    }


def _write_inertia(model: mujoco.MjModel, body: int, inertial: Array) -> None:
    mass = inertial[0]
    com = inertial[1:4] / mass
    moments, axes = np.linalg.eigh(_unpack(inertial[4:]) - mass * _steiner(com, com))
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    model.body_mass[body] = mass
    model.body_ipos[body] = com
    model.body_inertia[body] = moments
    mujoco.mju_mat2Quat(model.body_iquat[body], np.ascontiguousarray(axes).ravel())
    model.body_sameframe[body] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE


# Places in the upper triangular factor of s12, s23, s13, t1, t2, t3, the last six numbers.
_UPPER = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))


def _log_cholesky(model: mujoco.MjModel, body: int) -> Array:
    """The ten numbers theta with U(theta) U(theta)^T the pseudo-inertia of the body."""
    inertial = _inertial(model, body)
    moments = _unpack(inertial[4:])
    pseudo = np.empty((4, 4))
    pseudo[:3, :3] = 0.5 * np.trace(moments) * np.eye(3) - moments
    pseudo[:3, 3] = pseudo[3, :3] = inertial[1:4]
    pseudo[3, 3] = inertial[0]
    try:
        # an upper factor of P is a lower factor of P with its rows and columns reversed
        upper = np.linalg.cholesky(pseudo[::-1, ::-1])[::-1, ::-1]
    except np.linalg.LinAlgError:
        name = mujoco.mj_id2name(model, _OBJ.mjOBJ_BODY, body)
        raise ArgumentError(
            f'the inertia of body "{name}" is not that of any distribution of mass (zero, or it'
            " violates the triangle inequality): body_log_cholesky cannot describe it"
        ) from None
    scale = upper[3, 3]
    return np.concatenate(
        [
            [np.log(scale)],
            np.log(np.diag(upper)[:3] / scale),
            [upper[place] / scale for place in _UPPER],
        ]
    )


def _from_log_cholesky(theta: Array) -> tuple[Array, Array]:
    """The inertia of these ten numbers, and its derivative with respect to them."""
    scale = np.exp(theta[0])
    upper = np.diag(np.append(scale * np.exp(theta[1:4]), scale))
    for value, place in zip(theta[4:], _UPPER, strict=True):
        upper[place] = scale * value
    changes: list[Array] = [upper]
    for k in range(3):
        changes.append(np.zeros((4, 4)))
        changes[-1][k, k] = upper[k, k]
    for place in _UPPER:
        changes.append(np.zeros((4, 4)))
        changes[-1][place] = scale

    def inertial(pseudo: Array) -> Array:
        sigma = pseudo[:3, :3]
        moments = np.trace(sigma) * np.eye(3) - sigma
        return np.concatenate([[pseudo[3, 3]], pseudo[:3, 3], _pack(moments)])

    slopes = [inertial(change @ upper.T + upper @ change.T) for change in changes]
    return inertial(upper @ upper.T), np.array(slopes).T

"""Physical parameters of a model as a vector, for gradients and identification."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core, notices
from mujacobian.arguments import require_data, shaped, suggestion
from mujacobian.derived import (
    Scratch,
    depends_on,
    derived_constants,
    structure_key,
    write_constants,
)
from mujacobian.derived_slopes import DerivedSlopes
from mujacobian.errors import ArgumentError, ArgumentTypeError
from mujacobian.inertia import (
    from_log_cholesky,
    inertial_slopes,
    log_cholesky,
    principal_axes,
    write_inertia,
)
from mujacobian.placement import bound_body, bound_geom, release, release_inertial_frame
from mujacobian.threads import borrowed

Array = NDArray[np.float64]

_KINDS = _core.parameter_kinds()
_INERTIAL, _INERTIAL_FRAME = _KINDS.index("inertial"), _KINDS.index("inertial_frame")
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
# all families of parameters
FIELDS = {
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
      derived: "recompute" or "hold" the constants that `mj_setConst` derives from masses, inertias,
        armature and frames: dof_invweight0, body_invweight0, tendon_invweight0, actuator_acc0 and
        others. They scale the regularization of every constraint and the forces of some muscles.
        By default, `apply` recomputes them and derivatives include them, as if the model had been
        compiled with these values. "hold" keeps them, which is what a program does that writes
        into a model and does not call `mj_setConst`.

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

    def __init__(
        self,
        model: mujoco.MjModel,
        items: Iterable[Item],
        *,
        derived: Literal["recompute", "hold"] = "recompute",
    ) -> None:
        if not isinstance(model, mujoco.MjModel):
            raise ArgumentTypeError(f"model must be a mujoco.MjModel, got {type(model).__name__}")
        if isinstance(items, str):
            raise ArgumentTypeError(f'items must be a list of fields, such as ["{items}"]')
        if derived not in ("recompute", "hold"):
            raise ArgumentError(f'derived must be "recompute" or "hold", got {derived!r}')
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
            if kind := FIELDS[entry.field].kind:
                row = entry.element if entry.field == "qpos_spring" else entry.row
                core.append((_KINDS.index(kind), row, max(0, entry.component)))
        self._raw = core
        self._recomputes = derived == "recompute" and depends_on(core)
        self._frames = self._elements("body_ipos", "body_log_cholesky")
        # both are shared by all models that these parameters are bound to
        self._known: dict[bytes, DerivedSlopes] = {}
        self._scratch = Scratch()

    @cached_property
    def _derived(self) -> DerivedSlopes:
        """The derived constants that steps of the model read, and their derivatives.

        Which these are is the same for most models that parameters are bound to, one per product.
        """
        key = structure_key(self.model) if self._recomputes else b""
        if key not in self._known:
            constants = derived_constants(self.model, self._raw) if self._recomputes else []
            self._known[key] = DerivedSlopes(self.model, constants, self._raw)
        return self._known[key]

    @cached_property
    def core(self) -> list[tuple[int, int, int]]:
        """The parameters of the core: kind, element, component."""
        frames = [(_INERTIAL_FRAME, body, 0) for body in self._frames]
        return [*self._raw, *self._derived.constants, *frames]

    def of_model(self, model: mujoco.MjModel) -> Parameters:
        """The same parameters of another model, which has the same elements."""
        here = copy.copy(self)
        here.model = model
        for cached in ("names", "core", "_derived"):
            here.__dict__.pop(cached, None)
        return here

    def __len__(self) -> int:
        return len(self._entries)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each number is."""
        return tuple(_name(self.model, e) for e in self._entries)

    @property
    def units(self) -> tuple[str, ...]:
        """Units; two where they depend on the kind of joint (translation or rotation)."""
        return tuple(FIELDS[e.field].unit for e in self._entries)

    @property
    def lower(self) -> Array:
        """Least value that makes sense, -inf where there is none."""
        return np.array([FIELDS[e.field].lower for e in self._entries])

    @property
    def upper(self) -> Array:
        """Largest value that makes sense, inf where there is none."""
        return np.array([FIELDS[e.field].upper for e in self._entries])

    @property
    def values(self) -> Array:
        """The numbers in the model."""
        return np.array([_read(self.model, e) for e in self._entries], dtype=np.float64)

    def check(self, values: ArrayLike) -> Array:
        """`values` as a vector, or an error that says what is wrong with it."""
        vector = shaped("values", values, (len(self),), finite=False)
        lower = self.lower
        for k in np.flatnonzero(~(np.isfinite(vector) & (vector >= lower)))[:1]:
            name, value = self.names[k], vector[k]
            if not np.isfinite(value):
                raise ArgumentError(f"{name} must be finite, got {value}")
            raise ArgumentError(f"{name} must be at least {lower[k]:g}, got {value:g}")
        return vector

    def apply(self, values: ArrayLike) -> mujoco.MjModel:
        """A copy of the model with these values.

        Elements whose values are the model's own stay bitwise as they are. No geom, site, camera or
        light moves with an inertial frame.
        """
        vector = self.check(values)
        model = copy.copy(self.model)
        notices.share(self.model, model)
        edited = vector != self.values
        entries = [e for e, new in zip(self._entries, edited, strict=True) if new]

        def of(*fields: str) -> list[int]:
            return list(dict.fromkeys(e.element for e in entries if e.field in fields))

        for body in of("body_ipos", "body_log_cholesky"):
            release_inertial_frame(model, body)
        for geom in of("geom_pos", "geom_quat"):
            release(model, "geom", geom)
        for entry, value in zip(entries, vector[edited], strict=True):
            if entry.field != "body_log_cholesky":
                _write(model, entry, value)
        for field in (*_TURNED, "jnt_axis"):
            for element in of(field):
                getattr(model, field)[element] /= np.linalg.norm(getattr(model, field)[element])
        for body in of("body_log_cholesky"):
            chosen = vector[self._places("body_log_cholesky", body)]
            write_inertia(model, body, from_log_cholesky(chosen)[0])
        for geom in of("geom_size"):
            bound_geom(model, geom)
        geoms = of("geom_pos", "geom_quat", "geom_size")
        for body in {*of("body_ipos", "body_log_cholesky"), *model.geom_bodyid[geoms].tolist()}:
            bound_body(model, body)
        if self._recomputes:
            with borrowed(self.model) as data:
                if not self._scratch.recompute(model, data):
                    values = self._derived.values(model, data)
                    write_constants(model, self._derived.constants, values)
        elif entries:
            restore_derived(model)
        return model

    def jacobian(self, values: ArrayLike, applied: mujoco.MjModel | None = None) -> Array:
        """How the raw parameters of the core change with the vector, (len(core), len(self)).

        `applied` is the model with these values, if it is there already.
        """
        vector = self.check(values)
        model = self.apply(vector) if applied is None else applied
        result = np.zeros((len(self._raw), len(self)))
        slopes: dict[tuple[str, int], Array] = {}
        for column, e in enumerate(self._entries):
            if e.field not in _INERTIA_FIELDS:
                continue
            if (e.field, e.element) not in slopes:
                slopes[e.field, e.element] = self._inertial_slopes(model, vector, e)
            first = 10 * self._bodies.index(e.element)
            of_field = slopes[e.field, e.element]
            result[first : first + 10, column] = of_field[:, max(0, e.component)]
        row = 10 * len(self._bodies)
        for field, element in self._turned:
            w, x, y, z = getattr(model, field)[element]
            columns = self._places(field, element)
            turn = np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
            result[row : row + 3, columns] = 2 / np.linalg.norm(vector[columns]) * turn
            row += 3
        for column, e in enumerate(self._entries):
            if FIELDS[e.field].kind:
                result[row, column] = 1
                row += 1
        with borrowed(self.model) as data:
            require_data("applied", model, data)
            slopes_of_derived = self._derived.slopes(model, data)
        # a product of BLAS would start threads, which take longer than it
        derived = np.einsum("ij,jk->ik", slopes_of_derived, result)
        return np.concatenate([result, derived, np.zeros((len(self._frames), len(self)))])

    def _inertial_slopes(self, model: mujoco.MjModel, vector: Array, e: _Entry) -> Array:
        """How the ten numbers of a body change with the components of a field."""
        if e.field == "body_log_cholesky":
            return from_log_cholesky(vector[self._places(e.field, e.element)])[1]
        return inertial_slopes(model, e.element, e.field)

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
    if name not in FIELDS:
        hint = suggestion(name, list(FIELDS))
        raise ArgumentError(f"unknown field {name!r}: {hint} Known are {', '.join(FIELDS)}")
    field = FIELDS[name]
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
            names = [mujoco.mj_id2name(model, kind, k) for k in range(count)]
            hint = suggestion(str(element), [name for name in names if name])
            raise ArgumentError(
                f"{field}: the model has no {kind.name[6:].lower()} {element!r}: {hint}"
            )
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
    kind = FIELDS[e.field].element
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
        return float(log_cholesky(model, e.element)[e.component])
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
            axis = model.jnt_axis[joint]
            inertia = model.body_inertia[body] @ (principal_axes(model, body).T @ axis) ** 2
            arm = np.cross(axis, model.body_ipos[body] - model.jnt_pos[joint])
            inertia += model.body_mass[body] * (arm @ arm)
        else:
            inertia = model.body_inertia[body][place % 3]
        model.dof_M0[dof] = inertia + model.dof_armature[dof]

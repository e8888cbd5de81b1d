"""Entries of a vector of parameters: their places in a model, names and values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian._arguments import Array, suggestion
from mujacobian._parameters.fields import (
    BALL,
    COUNTS,
    FIELDS,
    HINGE,
    NO_BIAS,
    SINGLE_GAINS,
    SIZES,
    SLIDE,
)
from mujacobian._parameters.inertia import log_cholesky
from mujacobian.errors import ArgumentError, ArgumentTypeError

_OBJ = mujoco.mjtObj
Item = str | tuple[str, str | int | Sequence[str | int]]


@dataclass(frozen=True)
class Entry:
    """One number of the vector: a component of a row of a field."""

    field: str
    element: int  # body, joint, ...
    row: int  # of the field
    component: int  # -1 for a number


def expand(model: mujoco.MjModel, item: Item) -> list[Entry]:
    """Return the entries that an item of the list stands for."""
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
        return [Entry(name, 0, 0, k) for k in components]
    entries = []
    for element in _elements(model, name, field.element, chosen):
        for row in _rows(model, name, element):
            if name.endswith("frictionloss") and getattr(model, name)[row] == 0:
                if chosen is None:
                    continue
                raise ArgumentError(
                    f"{name_of(model, Entry(name, element, row, -1))} is zero, where MuJoCo has no"
                    " dry friction at all: give it a small value first"
                )
            entries += [
                Entry(name, element, row, k) for k in components if _has(model, name, row, k)
            ]
    return entries


def _has_frame(model: mujoco.MjModel, field: str, joint: int) -> bool:
    """Return whether a joint has an anchor or an axis, and is the only one of its body."""
    kind, body = model.jnt_type[joint], model.jnt_bodyid[joint]
    other = BALL if field == "jnt_pos" else SLIDE
    return model.body_jntnum[body] == 1 and kind in (HINGE, other)


def _require_single_joint(model: mujoco.MjModel, e: Entry) -> None:
    if not _has_frame(model, e.field, e.element):
        raise ArgumentError(
            f"{name_of(model, e)}: it must be the only joint of its body, and a hinge, a ball (for"
            " jnt_pos) or a slide (for jnt_axis)"
        )


def _elements(
    model: mujoco.MjModel, field: str, kind: mujoco.mjtObj, chosen: object
) -> Sequence[int]:
    count = getattr(model, COUNTS[kind])
    if chosen is None:
        if field == "geom_size":
            return [g for g in range(count) if int(model.geom_type[g]) in SIZES]
        if field in ("jnt_pos", "jnt_axis"):
            return [j for j in range(count) if _has_frame(model, field, j)]
        if field in ("body_pos", "body_quat"):
            return [b for b in range(1, count) if model.body_mocapid[b] < 0]
        if field in ("jnt_range", "jnt_solref"):
            scalar = np.isin(model.jnt_type, (SLIDE, HINGE))
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
    """Return the rows of the field that belong to the element."""
    if field.startswith("dof_"):
        size = (6, 3, 1, 1)[model.jnt_type[element]]
        return range(model.jnt_dofadr[element], model.jnt_dofadr[element] + size)
    if field == "qpos_spring":
        scalar = model.jnt_type[element] in (SLIDE, HINGE)
        return [model.jnt_qposadr[element]] if scalar else []
    return [element]


def _has(model: mujoco.MjModel, field: str, row: int, component: int) -> bool:
    """Return whether MuJoCo reads a component: constant gains and muscles have only one."""
    if field == "actuator_gainprm":
        if model.actuator_gaintype[row] == int(mujoco.mjtGain.mjGAIN_MUSCLE):
            return component == _muscle_force(model.actuator_gainprm[row])
        several = model.actuator_gaintype[row] not in SINGLE_GAINS
        return component < (3 if several else 1)
    if field == "actuator_biasprm":
        if model.actuator_biastype[row] == int(mujoco.mjtBias.mjBIAS_MUSCLE):
            return component == _muscle_force(model.actuator_biasprm[row])
        return component < (0 if model.actuator_biastype[row] == NO_BIAS else 3)
    if field == "geom_size":
        return component < SIZES.get(int(model.geom_type[row]), 1)
    return True


def _muscle_force(prm: Array) -> int:
    """Return the index of a muscle's largest force, or of the scale that replaces it."""
    return 3 if prm[2] < 0 else 2


def name_of(model: mujoco.MjModel, e: Entry) -> str:
    """Return the name: the field, its element by name or index, and the component."""
    kind = FIELDS[e.field].element
    if kind is None:
        return f"{e.field}[{e.component}]"
    name = mujoco.mj_id2name(model, kind, e.element)
    text = f'{e.field}["{name}"]' if name else f"{e.field}[{e.element}]"
    rows = list(_rows(model, e.field, e.element))
    if len(rows) > 1:
        text += f"[{rows.index(e.row)}]"
    return text if e.component < 0 else f"{text}[{e.component}]"


def read(model: mujoco.MjModel, e: Entry) -> float:
    """Return the number in the model."""
    if e.field == "body_log_cholesky":
        return float(log_cholesky(model, e.element)[e.component])
    if e.field == "gravity":
        return float(model.opt.gravity[e.component])
    row = getattr(model, e.field)[e.row]
    return float(row if e.component < 0 else row[e.component])


def write(model: mujoco.MjModel, e: Entry, value: float) -> None:
    """Write the number into the model. It must not be one of `body_log_cholesky`."""
    if e.field == "gravity":
        model.opt.gravity[e.component] = value
    elif e.component < 0:
        getattr(model, e.field)[e.row] = value
    else:
        getattr(model, e.field)[e.row][e.component] = value


def refuse_overlap(model: mujoco.MjModel, entries: tuple[Entry, ...]) -> None:
    """Raise if some entries cannot be parameters, or not together with others."""
    for e in entries:
        name = mujoco.mj_id2name(model, _OBJ.mjOBJ_BODY, e.element)
        if e.field in ("body_ipos", "body_log_cholesky") and model.body_simple[e.element]:
            raise ArgumentError(
                f'{e.field} of body "{name}": MuJoCo compiled this body as simple (its frame is'
                " at its center of mass), so that its center of mass cannot move. Use body_mass"
                " and body_inertia, or compile the model with an inertial frame off the origin"
            )
        if e.field in ("jnt_pos", "jnt_axis"):
            _require_single_joint(model, e)
        if e.field in ("body_pos", "body_quat") and model.body_mocapid[e.element] >= 0:
            raise ArgumentError(
                f'{e.field} of body "{name}": it is a mocap body, whose pose is an input of'
                " rollouts and products (mocap) and no parameter"
            )
        if e.field == "body_log_cholesky":
            others = {"body_mass", "body_ipos", "body_inertia"}
            if any(o.field in others and o.element == e.element for o in entries):
                raise ArgumentError(
                    f'body_log_cholesky of body "{name}" already has its mass, center of mass'
                    " and inertia"
                )

"""Derivatives of derived constants by frames of bodies and joints, which move subtrees (PAR-23)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._parameters.derived import (
    ACTUATOR,
    BODY_OFFSET,
    BODY_POSITION,
    BODY_TURN,
    JOINT_AXIS,
    JOINT_POSITION,
    LENGTH,
    TENDON,
    Raw,
)
from mujacobian._parameters.derived_terms import Terms, cross, tendon_rows
from mujacobian._rotation import axial, quaternion_matrix

Indices = NDArray[np.intp]

_FREE, _SLIDE = (int(getattr(mujoco.mjtJoint, f"mjJNT_{name}")) for name in ("FREE", "SLIDE"))


class _Place(NamedTuple):
    """The place at which a subtree moves: its first body, before or after the body's own dofs."""

    body: int
    before: bool


@dataclass(frozen=True)
class _VirtualDof:
    """Motions of a body and its descendants, about the world's origin; see `VirtualDof` in C++.

    The columns are those for a unit change of each of the three numbers of a frame parameter.
    """

    place: _Place
    turn: Array
    shift: Array


def add_frame_slopes(result: Array, terms: Terms, core: list[Raw], columns: Indices) -> None:
    """Add the effects of moving subtrees on M, rows, lengths and anchors to the derivatives."""
    groups: dict[tuple[int, int], list[int]] = {}
    for column in columns.tolist():
        groups.setdefault(core[column][:2], []).append(column)
    virtual_dofs = {raw: _virtual_dofs(terms.model, terms.data, *raw) for raw in groups}
    places = list(dict.fromkeys(c.place for found in virtual_dofs.values() for c in found))
    if places:
        turning, shifting = _wrenches(terms, places)
        for raw, own in groups.items():
            components = [core[column][2] for column in own]
            for c in virtual_dofs[raw]:
                k = places.index(c.place)
                moved = turning[k] @ c.turn + shifting[k] @ c.shift
                result[:, own] += moved[:, components]
    _add_paths(result, terms, core, columns)


def _wrenches(terms: Terms, places: list[_Place]) -> tuple[Array, Array]:
    """Return derivatives of constants by the motion at each place: (places, constants, 3), twice.

    The first array is for the rotation, the second for the translation of the point at the world's
    origin.
    """
    s, model = terms.structure, terms.model
    body = np.array([place.body for place in places])
    before = np.array([place.before for place in places])
    base = np.where(before, model.body_parentid[body], body)
    turning, shifting = np.zeros((2, len(places), len(s.constants), 3))
    twists = terms.jacobians @ terms.x.T
    if s.count:
        for whole, part in zip(
            (turning, shifting), _inertia(terms, twists, body, base), strict=True
        ):
            whole[:, s.with_terms] -= s.sum_terms(part.transpose(2, 0, 1)).transpose(1, 0, 2)
    below = _below(model, body)
    if len(s.bodies):
        of_bodies = below[:, s.element[s.bodies]][:, :, None] * (2 / 3)
        for whole, part in zip((turning, shifting), _body_rows(terms, twists, base), strict=True):
            whole[:, s.bodies] += of_bodies * part
    for row in s.anchors.tolist():
        eq = s.element[row]
        share = below[:, model.eq_obj1id[eq]] * 1.0 - below[:, model.eq_obj2id[eq]]
        axis = terms.anchor_axis(row)
        turning[:, row] += share[:, None] * np.cross(terms.anchor(row), axis)
        shifting[:, row] += share[:, None] * axis
    return turning, shifting


def _inertia(terms: Terms, twists: Array, body: Indices, base: Indices) -> tuple[Array, Array]:
    """Return x . dM y of all terms, (places, 3, terms) for rotations and for translations.

    With a motion (s, t) of the subtree, -(S x V(x)) . P(y) is
    s . (L x omega + p x v) + t . (p x omega), where P = (L, p) and V = (omega, v).
    """
    same = terms.y is terms.x
    other = twists if same else terms.jacobians @ terms.y.T
    momentum = _momentum(terms, other)
    pairs = [(twists, momentum)]
    if not same:
        pairs.append((other, _momentum(terms, twists)))
    turning, shifting = np.zeros((2, len(body), 3, twists.shape[2]))
    for twist, moving in pairs:
        omega, v = twist[base, :3], twist[base, 3:]
        spin, push = moving[body, :3], moving[body, 3:]
        turning += cross(spin, omega) + cross(push, v)
        shifting += cross(push, omega)
    factor = 2 if same else 1
    return factor * turning, factor * shifting


def _momentum(terms: Terms, twists: Array) -> Array:
    """Return the momentum of subtrees about the world's origin, (nbody, 6, terms)."""
    model, data = terms.model, terms.data
    axes, center = data.ximat.reshape(-1, 3, 3), data.xipos[:, :, None]
    turn = twists[:, :3]
    push = model.body_mass[:, None, None] * (twists[:, 3:] + cross(turn, center))
    spin = axes @ (model.body_inertia[:, :, None] * (axes.transpose(0, 2, 1) @ turn))
    total = np.concatenate([spin + cross(center, push), push], axis=1)
    for b in range(model.nbody - 1, 0, -1):
        total[model.body_parentid[b]] += total[b]
    return total


def _body_rows(terms: Terms, twists: Array, base: Indices) -> tuple[Array, Array]:
    """Return the sums of x_k . dr_k over the three rows of bodies, (places, bodies, 3) twice."""
    s = terms.structure
    elements = s.element[s.bodies]
    com = terms.data.xipos[elements]
    own = twists[elements[:, None], :, s.body_terms].transpose(0, 2, 1)  # (bodies, 6, axes)
    based = twists[base][:, :, s.body_terms].transpose(0, 2, 1, 3)  # (places, bodies, 6, axes)
    turn, before = own[:, :3], based[:, :, :3]
    point = com[:, :, None]
    moved = own[:, 3:] + cross(turn, point) - based[:, :, 3:] - cross(before, point)
    along = axial(before)
    of_point = cross(point, along[..., None])[..., 0] - axial(moved)
    turns = s.component[s.bodies].astype(bool)[:, None]
    return np.where(turns, -axial(turn - before), of_point), np.where(turns, 0.0, along)


def _below(model: mujoco.MjModel, roots: Indices) -> NDArray[np.bool_]:
    """Return whether each body is a root or a descendant of it, (roots, nbody)."""
    below = np.zeros((len(roots), model.nbody), dtype=bool)
    below[np.arange(len(roots)), roots] = True
    for b in range(1, model.nbody):
        below[:, b] |= below[:, model.body_parentid[b]]
    return below


def _add_paths(result: Array, terms: Terms, core: list[Raw], columns: Indices) -> None:
    """Add changes of the lengths and moments of tendons and muscles."""
    s, model = terms.structure, terms.model
    armature = _tendon_armature(model)
    lengths, rows = s.lengths.tolist(), [*s.tendons.tolist(), *s.muscles.tolist()]
    if not (armature or lengths or rows):
        return
    paths = _paths(terms, [core[column] for column in columns.tolist()], armature)
    pattern = _pattern(model) if armature else np.zeros((0, 0))
    own = tendon_rows(model, terms.data) if armature else np.zeros((0, 0))
    for tendon, inertia in armature.items():
        for place, column in enumerate(columns.tolist()):
            turned = np.outer(paths[TENDON, tendon][place, 1:], own[tendon])
            dM = inertia * pattern * (turned + turned.T)
            changes = ((terms.x @ dM) * terms.y).sum(axis=1)
            result[s.with_terms, column] -= s.sum_terms(changes)
    for row in lengths:
        result[row, columns] += paths[LENGTH, int(s.element[row])][:, 0]
    for row in rows:
        kind = int(s.kind[row])
        x = terms.x[s.owner == row].sum(axis=0)
        factor = 2 if kind == TENDON else 1
        result[row, columns] += factor * paths[kind, int(s.element[row])][:, 1:] @ x


def _paths(
    terms: Terms, frames: list[Raw], armature: dict[int, float]
) -> dict[tuple[int, int], Array]:
    """Return the derivatives of length and moments by the frames, (parameters, 1 + nv)."""
    s = terms.structure
    of_tendons = np.isin(s.kind, (TENDON, LENGTH))
    tendons = sorted({*armature, *s.element[of_tendons].tolist()})
    muscles = sorted(set(s.element[s.kind == ACTUATOR].tolist()))
    out = np.zeros((len(tendons) + len(muscles), len(frames), 1 + terms.model.nv))
    _core.frame_paths_into(
        terms.model,
        terms.data,
        parameters=frames,
        tendons=tendons,
        actuators=muscles,
        paths=out,
    )
    found = {(kind, t): out[k] for k, t in enumerate(tendons) for kind in (TENDON, LENGTH)}
    return found | {(ACTUATOR, a): out[len(tendons) + k] for k, a in enumerate(muscles)}


def _tendon_armature(model: mujoco.MjModel) -> dict[int, float]:
    """Return the armature of the spatial tendons that have any, including that of actuators."""
    total = model.tendon_armature.copy()
    along = model.actuator_trntype == int(mujoco.mjtTrn.mjTRN_TENDON)
    for a in np.flatnonzero(along & (model.actuator_armature != 0)):
        gear = model.actuator_gear[a, 0]
        total[model.actuator_trnid[a, 0]] += gear**2 * model.actuator_armature[a]
    spatial = model.wrap_type[model.tendon_adr] != int(mujoco.mjtWrap.mjWRAP_JOINT)
    return {t: float(total[t]) for t in np.flatnonzero((total != 0) & spatial).tolist()}


def _pattern(model: mujoco.MjModel) -> Array:
    """Return a matrix of ones at the entries of M that MuJoCo stores, and zeros elsewhere."""
    pattern = np.zeros((model.nv, model.nv))
    for i in range(model.nv):
        first = model.M_rowadr[i]
        columns = model.M_colind[first : first + model.M_rownnz[i]]
        pattern[i, columns] = pattern[columns, i] = 1
    return pattern


def _virtual_dofs(
    model: mujoco.MjModel, data: mujoco.MjData, kind: int, element: int
) -> list[_VirtualDof]:
    """Return the motions that unit changes of a frame parameter cause."""
    joint = kind in (JOINT_POSITION, JOINT_AXIS)
    body = int(model.jnt_bodyid[element]) if joint else element
    ahead, behind = _Place(body, True), _Place(body, False)
    first = model.body_jntadr[body]
    after = data.xmat[body].reshape(3, 3)
    zero = np.zeros((3, 3))
    if kind == BODY_OFFSET:
        return [_VirtualDof(behind, zero, after)]
    if kind == BODY_TURN:
        return [_turn(behind, after, data.xpos[body])]
    if not joint and first >= 0 and model.jnt_type[first] == _FREE:
        return []  # MuJoCo does not read this frame
    parent = model.body_parentid[body]
    outer = data.xmat[parent].reshape(3, 3)
    if kind == BODY_POSITION:
        return [_VirtualDof(ahead, zero, outer)]
    quat = model.body_quat[body]
    before = outer @ quaternion_matrix(quat / np.linalg.norm(quat))
    origin = data.xpos[parent] + outer @ model.body_pos[body]
    if not joint:
        return [_turn(ahead, before, origin)]
    slides = model.jnt_type[element] == _SLIDE
    if kind == JOINT_POSITION:
        return (
            [] if slides else [_VirtualDof(ahead, zero, before), _VirtualDof(behind, zero, -after)]
        )
    turn = np.cross(model.jnt_axis[element], np.eye(3)).T
    points = (origin, data.xpos[body]) if slides else (data.xanchor[element],) * 2
    return [_turn(ahead, before @ turn, points[0]), _turn(behind, -after @ turn, points[1])]


def _turn(place: _Place, axes: Array, point: Array) -> _VirtualDof:
    """Return rotations about axes, the columns, through a point."""
    return _VirtualDof(place, axes, cross(point[:, None], axes))
